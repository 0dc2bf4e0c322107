#pragma once

#include <nanobind/nanobind.h>

namespace loopfleet::python {

// IR: a program and its loops, made node by node.
void BindIr(nanobind::module_& module);

}  // namespace loopfleet::python
