#pragma once
// A data set's row of an outcome: loopfleet.rows.FIELDS as a Python dict.

#include <nanobind/nanobind.h>

#include <string>

#include "common/job/outcome.h"

namespace loopfleet::python {

// When it finished, by the coordinator's clock: ISO 8601, UTC, milliseconds.
std::string IsoTime(WallTime at);

// The fields in their order. `program`, `region` and `suspect` are None: an outcome does not say
// them. None instead of a dict: a job that is not timed has no row.
nanobind::object DatasetRow(const Outcome& outcome);

}  // namespace loopfleet::python
