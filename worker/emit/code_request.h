#pragma once
// CodeRequest: which tree the code is wanted of, read from one job line as `loopfleet submit` takes
// it, or put together from flags.

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/job/job_spec.h"

namespace loopfleet::worker {

// Of a job line, the fields that make its tree ("benchmark" | "ir", "actions", "dialect", "rules",
// "on_illegal", "merge_all_first") and "threads"; the others say how to measure and are passed
// over. kInvalid: it is no JSON object, or one of these is missing, of a wrong type or unknown.
Result<JobSpec> ParseCodeRequest(std::string_view line);

}  // namespace loopfleet::worker
