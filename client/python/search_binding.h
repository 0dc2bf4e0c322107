#pragma once
// Exploration as a Python class: the strategies of `loopfleet search`, for a transport in Python.

#include <nanobind/nanobind.h>

namespace loopfleet::python {

void BindSearch(nanobind::module_& module);

}  // namespace loopfleet::python
