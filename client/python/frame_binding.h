#pragma once
// The messages between clients and the coordinator as bytes, for a transport in Python (pyzmq).

#include <nanobind/nanobind.h>

namespace loopfleet::python {

void BindFrames(nanobind::module_& module);

}  // namespace loopfleet::python
