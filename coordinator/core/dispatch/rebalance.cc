#include "coordinator/core/dispatch/rebalance.h"

#include <algorithm>
#include <set>
#include <utility>

#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/lease_return.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/rules/placement.h"

namespace loopfleet::coordinator {
namespace {

bool IsIdle(const Worker& worker) {
  return worker.state == wire::WorkerState::kReady && worker.peer && !worker.reservation &&
         worker.running.empty();
}

// Its recent time per job, times the jobs that it holds. An unknown time counts as long.
bool IsLoaded(const Worker& worker, const Limits& limits) {
  if (worker.running.size() < 2) return false;
  return worker.job_took.value() == Nanos{0} ||
         worker.job_took.value() * static_cast<std::int64_t>(worker.running.size()) >
             limits.retract_work;
}

bool IsWaitedFor(const Transaction& tx, const Worker& worker) {
  return worker.asked_back_at != Instant{} &&
         tx.now.instant < worker.asked_back_at + tx.state.limits.retract_patience;
}

// The worker's latest leases, at most half of them, that the idle worker could run.
std::vector<LeaseId> Retractable(const Transaction& tx, const Worker& loaded, const Worker& idle) {
  const std::size_t most = std::min<std::size_t>(loaded.running.size() / 2, idle.FreeCredit());
  std::vector<LeaseId> leases;
  for (auto lease = loaded.running.rbegin(); lease != loaded.running.rend() && leases.size() < most;
       ++lease) {
    const Job& job = tx.state.jobs.At(tx.state.leases.Find(*lease)->job);
    if (job.spec.affinity.empty() && Serves(idle.supply(), DemandOf(job))) leases.push_back(*lease);
  }
  return leases;
}

// No job is queued that a worker of this device could run.
bool NothingIsQueued(const State& state, DeviceKind device) {
  for (const Placement placement : {Placement::kCpu, Placement::kCuda, Placement::kAny}) {
    if (Serves(device, placement) && state.ready.Size(placement) > 0) return false;
  }
  return true;
}

}  // namespace

void AskBack(Transaction& tx, Worker& worker, std::vector<LeaseId> leases) {
  if (leases.empty() || !worker.peer || !worker.Can(wire::kGiveBackCapability)) return;
  worker.asked_back_at = tx.now.instant;
  tx.effects.push_back(
      SendToWorker{.peer = *worker.peer, .command = wire::GiveBack{.leases = std::move(leases)}});
}

void OnReturned(Transaction& tx, Worker& worker, const wire::Returned& returned) {
  worker.asked_back_at = {};
  std::set<LeaseId> unrun;
  for (const LeaseId lease : returned.leases) {
    if (worker.running.contains(lease)) unrun.insert(lease);
  }
  ReturnLeases(tx, unrun, LeaseEnd::kUnrun);
}

void RetractFromLoaded(Transaction& tx) {
  State& state = tx.state;
  if (state.service != Service::kServing) return;
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    if (!NothingIsQueued(state, device)) continue;
    std::vector<Worker*> idle;
    std::vector<Worker*> loaded;
    for (const auto& [id, known] : state.workers.all()) {
      if (known.device() != device || !known.peer) continue;
      Worker& worker = *state.workers.Find(id);
      if (IsIdle(worker)) idle.push_back(&worker);
      if (IsLoaded(worker, state.limits) && !IsWaitedFor(tx, worker)) loaded.push_back(&worker);
    }
    std::ranges::sort(loaded, [](const Worker* a, const Worker* b) {
      return std::pair(b->running.size(), a->id()) < std::pair(a->running.size(), b->id());
    });
    for (std::size_t i = 0; i < std::min(idle.size(), loaded.size()); ++i) {
      AskBack(tx, *loaded[i], Retractable(tx, *loaded[i], *idle[i]));
    }
  }
}

}  // namespace loopfleet::coordinator
