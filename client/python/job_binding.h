#pragma once
// Job and Outcome as Python classes, and many outcomes as columns.

#include <nanobind/nanobind.h>

#include "common/job/job_spec.h"
#include "common/job/outcome.h"

namespace loopfleet::python {

struct Job {
  JobSpec spec;
};

void BindJobs(nanobind::module_& module);

}  // namespace loopfleet::python
