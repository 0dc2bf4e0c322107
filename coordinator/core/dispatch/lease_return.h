#pragma once
// What happens to a job whose lease ends without a report: its worker gave it back, dropped it, or
// was lost with it. Called by on_worker.cc when a worker falls silent (LoseSilentWorkers), says
// goodbye, or jobs could not be delivered to it (OnWorkerUnreachable).

#include <cstdint>
#include <set>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

enum class LeaseEnd : std::uint8_t {
  kUnrun,   // the worker says it never started the job: not counted as an attempt
  kUnseen,  // the worker says it never had it: not counted until Limits::max_unseen_losses
  kLost,    // the worker was lost with the job; after the last attempt: WORKER_LOST
};
// Ends the lease. Its job goes to the front of the queue, waits for a second verdict on another
// worker, or ends: with its first verdict if that was to be confirmed, or with WORKER_LOST.
void ReturnLease(Transaction& tx, LeaseId lease, LeaseEnd how);
// Returns these leases of one worker; their jobs keep their order.
void ReturnLeases(Transaction& tx, const std::set<LeaseId>& leases, LeaseEnd how);
// Returns leases that a worker says it does not have: they never arrived, or it dropped them.
void ReturnMissing(Transaction& tx, const std::set<LeaseId>& missing);

}  // namespace loopfleet::coordinator
