#pragma once
// Reads from a job line, in the format of `loopfleet submit`, which code `loopfleet-worker emit` is
// to print.

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/job/job_spec.h"

namespace loopfleet::worker {

// Reads the fields that determine the tree ("benchmark" | "ir", "actions", "dialect", "rules",
// "on_illegal", "merge_all_first") and "threads". The other fields say how to measure and are
// ignored. kInvalid: the line is no JSON object, or one of these fields is missing, of a wrong type
// or unknown.
Result<JobSpec> ParseCodeRequest(std::string_view line);

}  // namespace loopfleet::worker
