#pragma once

#include <nanobind/nanobind.h>

namespace loopfleet::python {

// LoopTree, Loop and IR: trees for scripts, and their transformations.
void BindTrees(nanobind::module_& module);

}  // namespace loopfleet::python
