#pragma once
// Reads the outcomes of a database file, for data sets (loopfleet.rows).

#include <nanobind/nanobind.h>

namespace loopfleet::python {

void BindDatabase(nanobind::module_& module);

}  // namespace loopfleet::python
