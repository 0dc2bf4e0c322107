#pragma once
// JobView: one job as JSON for its page: the request, the tree that it leads to, every step on the
// way, its outcome, and commands that show more or print its code. Pure functions.

#include "common/job/outcome_json.h"
#include "storage/record.h"

namespace loopfleet::coordinator {

// The most steps shown with their tree; further steps show only the action.
inline constexpr std::size_t kMaxShownSteps = 128;
// The most bytes of all these trees together.
inline constexpr std::size_t kMaxStepBytes = std::size_t{256} << 10;

Json JobViewJson(JobId id, const storage::StoredJob& job);

// An outcome as a row of a table.
Json OutcomeRowJson(const Outcome& outcome);

}  // namespace loopfleet::coordinator
