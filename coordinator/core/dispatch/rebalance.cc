#include "coordinator/core/dispatch/rebalance.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "coordinator/core/dispatch/dispatch.h"
#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/lease_return.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/rules/placement.h"

namespace loopfleet::coordinator {
namespace {

// Compared pairs of workers: a tick must not take long.
constexpr std::size_t kMostLooks = 10'000;

bool IsIdle(const Worker& worker) {
  return worker.state == wire::WorkerState::kReady && worker.peer && !worker.reservation &&
         worker.running.empty() && worker.FreeCredit() > 0;
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

// By shape and host. Workers of one shape differ only in their hosts, so of each shape two are
// looked at: one of the loaded worker's host, for jobs that name it, and one of any.
using IdleWorkers = std::map<std::uint64_t, std::map<std::string, std::vector<const Worker*>>>;

// The leases that one of the idle workers could run; that one is no longer idle then. Counts
// `looks` down: at 0 the search ends.
std::vector<LeaseId> TakeFor(const Transaction& tx, const Worker& loaded, IdleWorkers& idle,
                             std::size_t& looks) {
  for (auto& [shape, hosts] : idle) {
    for (const auto host : {hosts.find(loaded.facts.hardware.host), hosts.begin()}) {
      if (host == hosts.end()) continue;
      if (looks == 0) return {};
      --looks;
      std::vector<LeaseId> leases = Retractable(tx, loaded, *host->second.back());
      if (leases.empty()) continue;
      host->second.pop_back();
      if (host->second.empty()) hosts.erase(host);
      if (hosts.empty()) idle.erase(shape);
      return leases;
    }
  }
  return {};
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
  if (!MayGrant(tx)) return;
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    IdleWorkers idle;
    std::vector<Worker*> loaded;
    for (const auto& [id, known] : state.workers.all()) {
      if (known.device() != device || !known.peer) continue;
      Worker& worker = *state.workers.Find(id);
      if (IsIdle(worker))
        idle[worker.supply().shape][worker.facts.hardware.host].push_back(&worker);
      if (IsLoaded(worker, state.limits) && !IsWaitedFor(tx, worker) &&
          worker.Can(wire::kGiveBackCapability)) {
        loaded.push_back(&worker);
      }
    }
    std::ranges::sort(loaded, [](const Worker* a, const Worker* b) {
      return std::pair(b->running.size(), a->id()) < std::pair(a->running.size(), b->id());
    });
    std::size_t looks = kMostLooks;
    for (Worker* worker : loaded) AskBack(tx, *worker, TakeFor(tx, *worker, idle, looks));
  }
}

}  // namespace loopfleet::coordinator
