#pragma once
// How jobs enter and leave the ready queue, and what ties their affinity to a worker.

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Whether the job is to be ended, and not to be granted.
bool IsCancelled(const State& state, JobId job);

// What the job needs of its worker, wherever its affinity is bound.
Demand DemandOf(const Job& job);

// After what its client queued before, or before its equals: for one that had its turn before.
void PutInQueue(Transaction& tx, Job& job);
void PutInFront(Transaction& tx, Job& job);
// The job is queued and will not be. What it is instead is up to the caller.
void LeaveQueue(Transaction& tx, const Job& job);

// Takes a Retrying job out of the table, and ends the reservation that it may have.
void LeaveRetries(Transaction& tx, const Job& job);

// A job out of the queue. One that is cancelled or expired is the caller's to end.
struct Popped {
  enum class Fate : std::uint8_t { kWanted, kCancelled, kExpired };
  JobId job;
  Fate fate;
};
// The job whose turn it is at this worker; if it is wanted, its affinity is bound to the worker.
std::optional<Popped> PopFor(Transaction& tx, const Worker& worker);
// ... for a worker in quarantine: of the jobs that no ready worker could run (IsAssignable). Binds
// no affinity.
std::optional<Popped> PopLastFor(Transaction& tx, const Worker& worker);

// The job, which shares, has a worker: it leads, and who stands in line for the same leaves it.
void LeadFlight(Transaction& tx, const Job& job);
LinePlace LinePlaceOf(const State& state, const Job& job);

// Whether the job's affinity leaves it to this worker; if to any, to this one from now on.
bool BindAffinity(Transaction& tx, const Job& job, const Worker& worker);
// Affinities that are bound to none, and one of whose jobs is answered from the store, are bound to
// who measured it.
void BindStored(Transaction& tx, const std::vector<AdmittedJob>& jobs);
// Affinities whose worker is gone, drains or is quarantined: their jobs go to another one.
void ReleaseAffinities(Transaction& tx);

}  // namespace loopfleet::coordinator
