#pragma once
// CompiledTensor: a tensor's program as a function of arrays, what lt.compile gives.

#include <nanobind/nanobind.h>

namespace loopfleet::python {

void BindCompiledTensor(nanobind::module_& module);

}  // namespace loopfleet::python
