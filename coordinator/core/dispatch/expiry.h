#pragma once
// Ends jobs whose time has run out. (EnterJob in job_lifecycle.h ends one whose time ran out before
// it entered the queue.)

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Ends a job whose deadline has passed, in whatever state; a worker that holds it is told to drop
// it.
void Expire(Transaction& tx, JobId id);
// Ends all jobs whose deadline has passed, up to a limit; the next call continues.
void ExpireOverdue(Transaction& tx);
// Ends jobs that no worker could run for the whole grace period: NO_MATCHING_WORKER.
void ExpireUnschedulable(Transaction& tx);

}  // namespace loopfleet::coordinator
