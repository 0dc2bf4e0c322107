#pragma once
// JobView: one job as JSON, as its page shows it: what was asked, the tree that it leads to, every
// step on the way, its outcome, and the commands that look further or print its code. Pure.

#include "common/job/outcome_json.h"
#include "storage/record.h"

namespace loopfleet::coordinator {

// Steps of which the tree is shown; of the others, the action alone.
inline constexpr std::size_t kMaxShownSteps = 128;
// Of all trees of the steps together.
inline constexpr std::size_t kMaxStepBytes = std::size_t{256} << 10;

Json JobViewJson(JobId id, const storage::StoredJob& job);

// An outcome in one row of a table.
Json OutcomeRowJson(const Outcome& outcome);

}  // namespace loopfleet::coordinator
