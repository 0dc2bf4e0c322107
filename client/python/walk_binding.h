#pragma once
// Walk: a benchmark, the actions so far and the tree they lead to, as one Python class for both
// dialects: what an environment is made of. No network: only the tree.

#include <nanobind/nanobind.h>

namespace loopfleet::python {

void BindWalks(nanobind::module_& module);

}  // namespace loopfleet::python
