#pragma once
// Python: the vocabulary of pass ordering (common/llvm_passes).

#include <nanobind/nanobind.h>

namespace loopfleet::python {

void BindPasses(nanobind::module_& module);

}  // namespace loopfleet::python
