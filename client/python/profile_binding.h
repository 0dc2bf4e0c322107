#pragma once
// Python: jobs that ask where the time goes, and their answers (common/job/profile.h).

#include <nanobind/nanobind.h>

namespace loopfleet::python {

void BindProfiles(nanobind::module_& module);

}  // namespace loopfleet::python
