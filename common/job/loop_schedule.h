#pragma once
// The task that is a benchmark's loop tree after some actions: compiled, verified and timed.

#include <expected>

#include "common/job/failure.h"
#include "common/job/job_spec.h"
#include "common/job/resolved_task.h"
#include "common/looptree/actions/walk.h"

namespace loopfleet {

looptree::ReplayOptions ReplayOptionsOf(const JobSpec& spec);

// Replays the job's actions, and checks its dialect against the benchmark's.
std::expected<looptree::Replayed, Failure> ReplayJob(const JobSpec& spec);

std::expected<ResolvedTask, Failure> ResolveLoopSchedule(const JobSpec& spec);

}  // namespace loopfleet
