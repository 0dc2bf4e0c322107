#pragma once
// Encodes and decodes the client protocol's messages, for a transport in Python (pyzmq).

#include <nanobind/nanobind.h>

namespace loopfleet::python {

void BindFrames(nanobind::module_& module);

}  // namespace loopfleet::python
