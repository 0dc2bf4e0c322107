#pragma once
// How jobs enter and leave the ready queue, and how their affinity is bound to a worker.

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Whether the job is to be ended instead of granted.
bool IsCancelled(const State& state, JobId job);

// What the job needs of its worker, whatever worker its affinity is bound to.
Demand DemandOf(const Job& job);

// At the back: after its client's earlier jobs. In front: before its equals, for a job that was
// granted before.
void PutInQueue(Transaction& tx, Job& job);
void PutInFront(Transaction& tx, Job& job);
// Takes a queued job out of the queue. The caller sets its new state.
void LeaveQueue(Transaction& tx, const Job& job);

// Takes a Retrying job out of the RetryTable, and ends its reservation if it has one.
void LeaveRetries(Transaction& tx, const Job& job);

// A job taken out of the queue. If it is cancelled or expired, the caller has to end it.
struct Popped {
  enum class Fate : std::uint8_t { kWanted, kCancelled, kExpired };
  JobId job;
  Fate fate;
};
// The next job for this worker; nullopt if there is none. If it is wanted, its affinity is bound to
// the worker.
std::optional<Popped> PopFor(Transaction& tx, const Worker& worker);
// For a quarantined worker: the next of the jobs that no ready worker could run (IsAssignable).
// Binds no affinity.
std::optional<Popped> PopLastFor(Transaction& tx, const Worker& worker);

// A sharing job got a worker: it leads, and the others in line for its question leave the queue.
void LeadFlight(Transaction& tx, const Job& job);
LinePlace LinePlaceOf(const State& state, const Job& job);

// Whether the job's affinity allows this worker. If it is not bound yet, binds it to this worker.
bool BindAffinity(Transaction& tx, const Job& job, const Worker& worker);
// For jobs answered from the store: binds their affinity, if it is not bound, to the worker that
// measured the answer.
void BindStored(Transaction& tx, const std::vector<ResolvedJob>& jobs);
// Releases affinities whose worker is gone, drains or is quarantined: their jobs go to another
// worker.
void ReleaseAffinities(Transaction& tx);

}  // namespace loopfleet::coordinator
