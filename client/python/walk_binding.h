#pragma once
// Walk: a benchmark, the actions so far and the tree that they lead to, as one Python class for
// both dialects. Environments are built on it. No network.

#include <nanobind/nanobind.h>

namespace loopfleet::python {

void BindWalks(nanobind::module_& module);

}  // namespace loopfleet::python
