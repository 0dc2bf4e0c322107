#pragma once
// Python's view of tensors: loopfleet.tensor. Arrays come in and go out without copies where their
// memory allows it.

#include <nanobind/nanobind.h>

namespace loopfleet::python {

void BindTensors(nanobind::module_& module);

}  // namespace loopfleet::python
