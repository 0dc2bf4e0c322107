#pragma once
// Jobs that end because time has passed.

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Ends a job whose deadline has come, wherever it is; a worker that has it is told to drop it.
void Expire(Transaction& tx, JobId id);
// Ends all whose deadline has come (of very many, some; the next call goes on).
void ExpireOverdue(Transaction& tx);
// Ends jobs that no worker could run for the whole grace: NO_MATCHING_WORKER.
void ExpireUnschedulable(Transaction& tx);

}  // namespace loopfleet::coordinator
