#pragma once
// How jobs enter and leave the ready queue, and what ties their affinity to a worker.

#include <optional>
#include <vector>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// What the job needs of its worker, wherever its affinity is bound.
Demand DemandOf(const Job& job);

// After what its client queued before, or before its equals: for one that had its turn before.
void PutInQueue(Turn& turn, Job& job);
void PutInFront(Turn& turn, Job& job);
// The job is queued and will not be. What it is instead is up to the caller.
void LeaveQueue(Turn& turn, const Job& job);

// The job whose turn it is at this worker, out of the queue; its affinity is bound to the worker.
// Jobs whose deadline has come, or whose batch is cancelled, end on the way (of very many, some).
std::optional<JobId> TakeNextFor(Turn& turn, Worker& worker);
// ... for a worker in quarantine: of the jobs that no ready worker could run (MayBeGiven). No
// affinity is bound to it.
std::optional<JobId> TakeLastFor(Turn& turn, const Worker& worker);

// The job, which shares, has a worker: it leads, and who stands in line for the same leaves it.
void LeadFlight(Turn& turn, const Job& job);
LinePlace LinePlaceOf(const State& state, const Job& job);

// Whether the job's affinity leaves it to this worker; if to any, to this one from now on.
bool BindAffinity(Turn& turn, const Job& job, const Worker& worker);
// Affinities that are bound to none, and one of whose jobs is answered from the store, are bound to
// who measured it.
void BindStored(Turn& turn, const std::vector<AdmittedJob>& jobs);
// Affinities whose worker is gone, drains or is quarantined: their jobs go to another one.
void ReleaseAffinities(Turn& turn);

}  // namespace loopfleet::coordinator
