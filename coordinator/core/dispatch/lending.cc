#include "coordinator/core/dispatch/lending.h"

#include <fmt/format.h>

#include <utility>

#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/dispatch/retry.h"

namespace loopfleet::coordinator {
namespace {

Instant Since(const Turn& turn) { return turn.now.instant - turn.state.limits.drift_patience; }

// Remembered until a worker comes, goes or becomes something else: a thousand demands times ten
// thousand workers are not looked at again for each event.
bool IsLeft(State& state, const Demand& demand) {
  Lending& lending = state.lending;
  if (lending.changes != state.workers.changes()) {
    lending.changes = state.workers.changes();
    lending.left.clear();
  }
  const auto [known, is_new] = lending.left.try_emplace(demand, false);
  if (is_new) known->second = state.workers.IsLeftToLent(demand, lending.since);
  return known->second;
}

// Its first lease since it is in quarantine.
void Announce(Turn& turn, Worker& worker) {
  if (std::exchange(worker.lent_since_quarantine, true)) return;
  turn.effects.push_back(
      Observation{WorkerChanged{.change = WorkerChange::kLent,
                                .name = worker.facts.name,
                                .leases = static_cast<std::uint32_t>(worker.running.size()),
                                .quarantine = QuarantineOf(worker)}});
}

void GrantTo(Turn& turn, Worker& worker) {
  State& state = turn.state;
  wire::Leases leases;
  while (worker.FreeCredit() > 0 && !worker.reservation) {
    const auto job = TakeLentFor(
        turn, worker, [&](const Demand& demand) { return IsLeft(state, demand); });
    if (!job) {
      worker.nothing_lent_at = state.ready.changes();
      break;
    }
    if (MustRunAlone(state.jobs.At(*job))) {
      RunAlone(turn, worker, *job, leases);
    } else {
      leases.leases.push_back(GrantLease(turn, worker, *job));
    }
  }
  if (leases.leases.empty()) return;
  Announce(turn, worker);
  turn.effects.push_back(SendToWorker{.peer = *worker.peer, .command = std::move(leases)});
}

}  // namespace

void FindLent(Turn& turn) {
  State& state = turn.state;
  Lending& lending = state.lending;
  lending.since = Since(turn);
  lending.left.clear();
  lending.workers.clear();
  for (const auto& [id, worker] : state.workers.all()) {
    if (!IsLent(worker, lending.since)) continue;
    lending.workers.push_back(id);
    state.workers.Find(id)->nothing_lent_at = 0;  // somebody else may have gone
  }
}

void GrantLent(Turn& turn) {
  State& state = turn.state;
  for (const Uuid& id : state.lending.workers) {
    if (state.ready.size() == 0) return;
    Worker* worker = state.workers.Find(id);
    if (worker == nullptr || !worker->peer || !IsLent(*worker, state.lending.since)) continue;
    if (worker->nothing_lent_at == state.ready.changes()) continue;
    GrantTo(turn, *worker);
  }
}

bool MayHave(const Turn& turn, const Worker& worker, const Demand& demand) {
  if (worker.state == wire::WorkerState::kReady) return true;
  return IsLent(worker, Since(turn)) && turn.state.workers.IsLeftToLent(demand, Since(turn));
}

std::string DoubtOf(const Worker& worker, LeaseId lease) {
  if (TermsOf(lease) != Terms::kLent) return {};
  std::string doubt = "nobody else could measure it, and the worker was in quarantine";
  const Quarantine quarantine = QuarantineOf(worker);  // it may be steady again
  if (quarantine) doubt += ": " + QuarantineText(quarantine);
  return doubt;
}

}  // namespace loopfleet::coordinator
