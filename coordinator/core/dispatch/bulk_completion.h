#pragma once
// Endings of any number of jobs that one event brings about: an answer that many follow for, a
// batch that is cancelled. They are made piece by piece (Limits::max_endings_per_event), the next
// one when the last is on disk, so that others are served meanwhile, and what is on its way to disk
// stays small.
//
// Nothing is lost by it: a job that has no outcome yet is unfinished on disk, too. That a batch is
// cancelled is on disk with its first piece, and no job of it is granted from then on. A follower
// that has no answer yet when the coordinator is killed is asked of a worker again.

#include <cstdint>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

Failure CancelledFailure();

// Ends the first of the batch's unfinished jobs, and those that run; EndNextPiece goes on.
void StartCancelling(Transaction& tx, Batch& batch);
// Ends those of one message that was on its way to disk as the batch was cancelled.
void CancelArrived(Transaction& tx, const Batch& batch, std::uint32_t first_index);
// Ends one of a cancelled batch that is next to be granted.
void Cancel(Transaction& tx, JobId job);

// Ends some of what is to be ended, unless some are on their way to disk.
void EndNextPiece(Transaction& tx);

}  // namespace loopfleet::coordinator
