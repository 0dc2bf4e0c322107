#pragma once
// Explanation: why a job is in its present state, in figures and in words. Pure functions over the
// core's state.

#include <string>

#include "common/wire/message.h"
#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Explains a job of the JobTable.
wire::JobExplanation Explain(const State& state, const Job& job, Instant now);

// Explains a job that has left it. `outcome` nullopt: the outcome is on its way to disk.
wire::JobExplanation ExplainFinished(JobId job, std::optional<Outcome> outcome);

}  // namespace loopfleet::coordinator
