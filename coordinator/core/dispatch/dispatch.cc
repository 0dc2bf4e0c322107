#include "coordinator/core/dispatch/dispatch.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/core/dispatch/bulk_completion.h"
#include "coordinator/core/dispatch/expiry.h"
#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/dispatch/retry.h"

namespace loopfleet::coordinator {
namespace {

// Whether the queue was searched completely: false while ended jobs are still in it.
bool AllWasSeen(const Transaction& tx) {
  const State& state = tx.state;
  return !state.deadlines.Due(tx.now.instant) && state.endings.cancelled.empty() &&
         tx.commit.outcomes.size() < state.limits.max_endings_per_event;
}

// The next job that `pop` takes out of the queue for a worker. Ends the cancelled and expired jobs
// it meets, up to a limit.
template <class Pop>
std::optional<JobId> NextWanted(Transaction& tx, const Pop& pop) {
  while (const std::optional<Popped> popped = pop()) {
    switch (popped->fate) {
      case Popped::Fate::kWanted: return popped->job;
      case Popped::Fate::kCancelled: Cancel(tx, popped->job); break;
      case Popped::Fate::kExpired: Expire(tx, popped->job); break;
    }
    // The next event continues.
    if (tx.commit.outcomes.size() >= tx.limits().max_endings_per_event) break;
  }
  return std::nullopt;
}

// The worker idle longest comes first. After a grant a worker goes to the end of the busy ones, so
// none gets a second job before every worker with credit got a first.
void GrantTo(Transaction& tx, DeviceKind device) {
  State& state = tx.state;
  Offered& offered = state.offered[static_cast<std::size_t>(device)];
  // A demand that joins during the loop is a new one for the workers that were visited before.
  const std::uint64_t last_demand = state.ready.last_demand();
  std::map<Uuid, wire::Leases> granted;
  for (const Load load : {Load::kIdle, Load::kBusy}) {
    std::uint64_t rank = 0;
    while (state.ready.size() > 0) {
      if (!state.ready.HasDemandAfter(offered.demand)) rank = std::max(rank, offered.rank);
      Worker* worker = state.workers.NextCandidate(device, load, rank);
      if (worker == nullptr) break;
      rank = worker->rank;
      const auto job = NextWanted(tx, [&] { return PopFor(tx, *worker); });
      if (!job) continue;
      wire::Leases& leases = granted[worker->id()];
      if (leases.leases.empty()) {
        leases.leases.reserve(std::min<std::size_t>(worker->FreeCredit(), state.ready.size() + 1));
      }
      if (MustRunAlone(state.jobs.At(*job))) {
        RunAlone(tx, *worker, *job, leases);
      } else {
        leases.leases.push_back(GrantLease(tx, *worker, *job));
      }
    }
  }
  // Each candidate has found nothing more by now, or nothing is left to be found.
  offered = AllWasSeen(tx) ? Offered{.demand = last_demand, .rank = state.workers.last_rank()}
                           : Offered{};
  for (auto& [id, leases] : granted) {
    if (leases.leases.empty()) continue;  // reserved, for when it has no other jobs
    tx.effects.push_back(
        SendToWorker{.peer = *state.workers.Find(id)->peer, .command = std::move(leases)});
  }
}

// Quarantined workers get the jobs that no ready worker could run (placement.h).
void GrantToLast(Transaction& tx) {
  State& state = tx.state;
  const std::vector<Uuid> in_quarantine = state.workers.InQuarantine();
  for (const Uuid& id : in_quarantine) {
    if (state.ready.size() == 0) return;
    Worker& worker = *state.workers.Find(id);
    const std::pair seen{state.ready.last_demand(), state.workers.changes()};
    if (!worker.peer || worker.nothing_left_at == seen) continue;
    wire::Leases leases;
    while (worker.FreeCredit() > 0 && !worker.reservation) {
      const auto job = NextWanted(tx, [&] { return PopLastFor(tx, worker); });
      if (!job) {
        if (AllWasSeen(tx)) {
          worker.nothing_left_at = {state.ready.last_demand(), state.workers.changes()};
        }
        break;
      }
      if (MustRunAlone(state.jobs.At(*job))) {
        RunAlone(tx, worker, *job, leases);
      } else {
        leases.leases.push_back(GrantLease(tx, worker, *job));
      }
    }
    if (leases.leases.empty()) continue;
    tx.effects.push_back(SendToWorker{.peer = *worker.peer, .command = std::move(leases)});
  }
}

}  // namespace

bool HasRoomForOutcomes(const State& state, const OutcomeCommit& made) {
  const PendingCommits& commits = state.commits;
  return commits.undurable_outcomes() + made.outcomes.size() <
             state.limits.max_undurable_outcomes &&
         commits.undurable_outcome_bytes() + made.bytes < state.limits.max_undurable_outcome_bytes;
}

bool MayGrant(const Transaction& tx) {
  const State& state = tx.state;
  return state.service == Service::kServing && tx.now.instant >= state.grants_from &&
         HasRoomForOutcomes(state, tx.commit);
}

void GrantLeases(Transaction& tx) {
  if (!MayGrant(tx)) return;
  GrantRetries(tx);
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) GrantTo(tx, device);
  GrantToLast(tx);
}

}  // namespace loopfleet::coordinator
