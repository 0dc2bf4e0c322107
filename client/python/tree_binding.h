#pragma once

#include <nanobind/nanobind.h>

namespace loopfleet::python {

// LoopTree, Loop and IR: trees and programs for scripts, and their transformations.
void BindTrees(nanobind::module_& module);

}  // namespace loopfleet::python
