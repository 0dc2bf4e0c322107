#pragma once
// What runs Python's tensors: code compiled by `loopfleet-worker serve`, or the interpreter.

#include <nanobind/nanobind.h>

namespace loopfleet::python {

void BindKernels(nanobind::module_& module);

}  // namespace loopfleet::python
