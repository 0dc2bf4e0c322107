#pragma once
// Job lines: one JSON object per job, as `loopfleet submit` reads them. The fields are listed in
// kJobFields; all except "benchmark" | "ir" and "actions" are optional.

#include <array>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/failure.h"
#include "common/job/job_spec.h"

namespace loopfleet::client {

inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

inline constexpr std::array<std::string_view, 21> kJobFields = {
    "benchmark",       "ir",        "actions",   "dialect",      "rules",      "on_illegal",
    "merge_all_first", "device",    "labels",    "affinity",     "threads",    "cache",
    "priority",        "precision", "budget_ms", "cut_above_ns", "deadline_s", "fresh",
    "max_age_s",       "min_grade", "tag"};

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

// The line that ParseJobLine reads as `spec`, without a line break.
std::string JobLine(const JobSpec& spec);

}  // namespace loopfleet::client
