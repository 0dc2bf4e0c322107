#pragma once
// LocalTimer: how long loop trees take in this process, for a first figure within tens of
// milliseconds. It is no measurement: nothing keeps the machine quiet, and nothing grades it.

#include <nanobind/nanobind.h>

namespace loopfleet::python {

void BindLocalTimer(nanobind::module_& module);

}  // namespace loopfleet::python
