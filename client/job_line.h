#pragma once
// Job lines: one JSON object per job, as `loopfleet submit` reads them: "benchmark" or "ir",
// "actions", and the optional fields of common/job/job_fields.h.

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/failure.h"
#include "common/job/job_spec.h"

namespace loopfleet::client {

inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;
inline constexpr int kMaxTagNesting = 31;  // arrays and objects in "tag", inside each other

// A line that is not a valid job, with the fields that could be read: enough for an outcome.
struct RejectedJob {
  Failure failure;
  std::string benchmark;             // as given; "": not given
  std::vector<std::string> actions;  // as given
  std::string tag;                   // JSON text; "": none
};

// Codes: MALFORMED (not JSON, not an object, an unknown field, a wrong type, too long),
// INVALID_ACTION (with its index and the nearest name), LIMIT_ACTIONS, UNSUPPORTED.
std::expected<JobSpec, RejectedJob> ParseJobLine(std::string_view line);

// The names of all fields: "benchmark", "ir", "actions", and the optional ones.
const std::vector<std::string_view>& JobLineFields();

// "mm-v0/mm64_64_64" (a data set with its version, and a name), as pages and tables print it where
// room is scarce, is "benchmark://mm-v0/mm64_64_64". Anything else, the text of loops among it, is
// returned as it is.
std::string FullUri(std::string benchmark);

// The line that ParseJobLine reads as `spec`, without a line break.
std::string JobLine(const JobSpec& spec);

}  // namespace loopfleet::client
