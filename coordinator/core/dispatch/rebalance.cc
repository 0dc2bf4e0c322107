#include "coordinator/core/dispatch/rebalance.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "coordinator/core/dispatch/dispatch.h"
#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/lease_return.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/rules/placement.h"

namespace loopfleet::coordinator {
namespace {

// Leases examined, and workers compared with them, for each device: a tick must not take long. The
// next tick continues.
constexpr std::size_t kMostLooks = 3'000;

// A candidate without jobs that was offered all that waits.
bool IsIdle(const Worker& worker, const Offered& offered) {
  return worker.rank != 0 && worker.rank <= offered.rank && worker.running.empty();
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

// Finds idle workers of one device for leases that loaded ones hold.
class IdleWorkers {
 public:
  IdleWorkers(const Transaction& tx, DeviceKind device, const std::vector<const Worker*>& idle)
      : tx_(tx), device_(device), left_(idle.size()) {
    for (const Worker* worker : idle) by_shape_[worker->supply().shape].push_back(worker);
  }

  bool may_look() const { return left_ > 0 && looks_ < kMostLooks; }
  // The worker's latest leases, at most half of them, that one of the idle workers could run. That
  // one is no longer idle then.
  std::vector<LeaseId> TakeFor(const Worker& loaded);

 private:
  // Null: none fits.
  const Worker* Find(const Demand& demand);
  const Worker* FindOnHost(const std::string& host, const Demand& demand);

  const Transaction& tx_;
  const DeviceKind device_;
  std::map<std::uint64_t, std::vector<const Worker*>> by_shape_;
  std::size_t left_;
  std::set<Uuid> taken_;
  std::set<Demand> hopeless_;  // none of the idle workers fits
  std::size_t looks_ = 0;
};

std::vector<LeaseId> IdleWorkers::TakeFor(const Worker& loaded) {
  std::size_t most = loaded.running.size() / 2;
  const Worker* idle = nullptr;
  std::vector<LeaseId> leases;
  for (auto lease = loaded.running.rbegin();
       lease != loaded.running.rend() && leases.size() < most && may_look(); ++lease) {
    ++looks_;
    const Job& job = tx_.state.jobs.At(tx_.state.leases.Find(*lease)->job);
    if (!job.spec.affinity.empty()) continue;
    Demand demand = DemandOf(job);
    if (idle != nullptr) {
      if (Serves(idle->supply(), demand)) leases.push_back(*lease);
    } else if (!hopeless_.contains(demand)) {
      idle = Find(demand);
      if (idle == nullptr) {
        hopeless_.insert(std::move(demand));
        continue;
      }
      most = std::min<std::size_t>(most, idle->FreeCredit());
      leases.push_back(*lease);
    }
  }
  if (idle != nullptr) {
    taken_.insert(idle->id());
    --left_;
  }
  return leases;
}

const Worker* IdleWorkers::Find(const Demand& demand) {
  if (const std::string* host = HostNamedBy(demand)) return FindOnHost(*host, demand);
  for (auto& [shape, workers] : by_shape_) {
    while (!workers.empty() && taken_.contains(workers.back()->id())) workers.pop_back();
    ++looks_;
    if (!workers.empty() && Serves(workers.back()->supply(), demand)) return workers.back();
  }
  return nullptr;
}

const Worker* IdleWorkers::FindOnHost(const std::string& host, const Demand& demand) {
  const Offered& offered = tx_.state.offered[static_cast<std::size_t>(device_)];
  for (const Uuid& id : tx_.state.workers.WithHostLabel(host)) {
    const Worker& worker = *tx_.state.workers.Find(id);
    ++looks_;
    if (worker.device() == device_ && IsIdle(worker, offered) && !taken_.contains(id) &&
        Serves(worker.supply(), demand)) {
      return &worker;
    }
  }
  return nullptr;
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
    const Offered& offered = state.offered[static_cast<std::size_t>(device)];
    std::vector<const Worker*> idle;
    std::vector<Worker*> loaded;
    for (const auto& [id, worker] : state.workers.all()) {
      if (worker.device() != device || !worker.peer) continue;
      if (IsIdle(worker, offered)) idle.push_back(&worker);
      if (IsLoaded(worker, state.limits) && !IsWaitedFor(tx, worker) &&
          worker.Can(wire::kGiveBackCapability)) {
        loaded.push_back(state.workers.Find(id));
      }
    }
    if (idle.empty() || loaded.empty()) continue;
    // First those that an earlier tick had no time for, then those with most leases.
    std::ranges::sort(loaded, [](const Worker* a, const Worker* b) {
      return std::tuple(a->looked_at, b->running.size(), a->id()) <
             std::tuple(b->looked_at, a->running.size(), b->id());
    });
    IdleWorkers idle_workers(tx, device, idle);
    for (Worker* worker : loaded) {
      if (!idle_workers.may_look()) break;
      worker->looked_at = tx.now.instant;
      AskBack(tx, *worker, idle_workers.TakeFor(*worker));
    }
  }
}

}  // namespace loopfleet::coordinator
