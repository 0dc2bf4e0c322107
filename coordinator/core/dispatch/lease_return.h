#pragma once
// What becomes of a job whose lease ends without a report: its worker gave it back, dropped it, or
// was lost with it.

#include <cstdint>
#include <set>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

enum class LeaseEnd : std::uint8_t {
  kUnrun,  // the worker says it never started: not counted as an attempt
  kLost,   // the worker was lost with it: if that was the last attempt, WORKER_LOST
};
// The job goes back to the front of the queue, or ends with WORKER_LOST.
void ReturnLease(Transaction& tx, LeaseId lease, LeaseEnd how);
// These leases of one worker; their jobs keep their order.
void ReturnLeases(Transaction& tx, const std::set<LeaseId>& leases, LeaseEnd how);

}  // namespace loopfleet::coordinator
