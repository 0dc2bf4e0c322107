#pragma once
// Ends any number of jobs because of one event: an answer with many followers, or a cancelled
// batch. They end piece by piece (Limits::max_endings_per_event), each piece once the previous one
// is on disk, so that other requests are served in between and few writes are pending at a time.
//
// Nothing is lost by this: a job without an outcome is unfinished on disk, too. The cancellation
// itself is on disk with its first piece, and no job of the batch is granted from then on. If the
// coordinator is killed, a follower without an answer yet is measured by a worker.

#include <cstdint>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

Failure CancelledFailure();

// Ends the batch's first unfinished jobs; EndNextPiece continues, with the running ones.
void StartCancelling(Transaction& tx, Batch& batch);
// Ends the jobs of one message that was on its way to disk when the batch was cancelled.
void CancelArrived(Transaction& tx, const Batch& batch, std::uint32_t first_index);
// Ends a job of a cancelled batch when it is next to be granted.
void Cancel(Transaction& tx, JobId job);

// Ends the next piece of the jobs to be ended, unless one is on its way to disk.
void EndNextPiece(Transaction& tx);

}  // namespace loopfleet::coordinator
