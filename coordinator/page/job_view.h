#pragma once
// JobView: one job as JSON for its page: the request, the tree that it leads to, every step on the
// way, its outcome, and commands that show more or print its code. Pure functions.

#include <optional>

#include "common/job/outcome_json.h"
#include "common/job/profile.h"
#include "storage/record.h"
#include "storage/store_reader.h"

namespace loopfleet::coordinator {

// The most steps shown with their tree; further steps show only the action.
inline constexpr std::size_t kMaxShownSteps = 128;
// The most bytes of all these trees together.
inline constexpr std::size_t kMaxStepBytes = std::size_t{256} << 10;
// The longest C text that is shown beside a profile.
inline constexpr std::size_t kMaxCodeBytes = std::size_t{256} << 10;

// `profile`: of the job's tree, on the hardware that measured it; null: none is stored.
Json JobViewJson(JobId id, const storage::StoredJob& job, const Profile* profile = nullptr);

// The finest stored profile of the tree of a measured job, under the job's conditions; of a job
// that is a profile, its own. nullopt: there is none, or it cannot be read.
std::optional<Profile> FindProfile(const storage::StoredJob& job, storage::StoreReader& reader);

// An outcome as a row of a table; without observed values.
Json OutcomeRowJson(const Outcome& outcome);

}  // namespace loopfleet::coordinator
