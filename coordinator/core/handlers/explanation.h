#pragma once
// Explanation: why a job is where it is, in figures and in words. Pure functions over the core's
// state.

#include <string>

#include "common/wire/message.h"
#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Of a job of the JobTable.
wire::JobExplanation Explain(const State& state, const Job& job, Instant now);

// Of one that is not there any more: `outcome` is what became of it; none: it is on its way to
// disk.
wire::JobExplanation ExplainFinished(JobId job, std::optional<Outcome> outcome);

}  // namespace loopfleet::coordinator
