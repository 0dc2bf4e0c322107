#include "coordinator/shell/fleet_snapshot.h"

#include <algorithm>
#include <utility>

#include "coordinator/core/dispatch/no_matching_worker.h"
#include "coordinator/core/handlers/worker_info.h"

namespace loopfleet::coordinator {
namespace {

// The most reasons given, and the most demands examined for them. Jobs bound to workers by affinity
// have a demand each, and a snapshot taken twice a second must not grow with them.
constexpr std::size_t kMaxReasons = 4;
constexpr std::size_t kMaxDemands = 256;

std::vector<std::string> UnschedulableReasons(const State& state) {
  std::vector<std::string> reasons;
  if (state.ready.size() == 0 || state.ready.open_demands() > kMaxDemands) return reasons;
  for (const Demand& demand : state.ready.Demands()) {
    if (!demand.only.is_nil()) break;  // these come last (placement.h)
    if (state.workers.IsServed(demand)) continue;
    reasons.push_back(WhyUnschedulable(state.workers, demand, Nanos{0}));
    if (reasons.size() == kMaxReasons) break;
  }
  return reasons;
}

}  // namespace

FleetSnapshot SnapshotOf(const Core& core, const Tally& tally, Moment now) {
  const State& state = core.state();
  FleetSnapshot snapshot{.at = now,
                         .coordinator = state.name,
                         .epoch = state.epoch,
                         .is_draining = state.service == Service::kDraining,
                         .queued = {core.Queued(Placement::kCpu), core.Queued(Placement::kCuda),
                                    core.Queued(Placement::kAny)},
                         .leased = core.Leased(),
                         .running_batches = state.batches.size(),
                         .unserved = UnschedulableReasons(state),
                         .undurable_outcomes = state.commits.undurable_outcomes(),
                         .tally = tally};
  if (now.instant < state.grants_from) {
    snapshot.returning_ms = static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(state.grants_from - now.instant)
            .count());
  }
  snapshot.workers.reserve(state.workers.size());
  for (const auto& [id, worker] : state.workers.all()) {
    snapshot.workers.push_back(WorkerInfoOf(worker, now.instant));
  }
  snapshot.drains.reserve(state.drains.size());
  for (const auto& [target, drain] : state.drains) {
    snapshot.drains.push_back(
        {.target = target, .reason = drain.reason, .by = drain.by, .since = drain.since});
  }
  return snapshot;
}

void SnapshotBoard::Show(FleetSnapshot snapshot) {
  next_ = snapshot.at.instant + kPeriod;
  auto shared = std::make_shared<const FleetSnapshot>(std::move(snapshot));
  const std::lock_guard lock(mutex_);
  newest_.swap(shared);  // the old snapshot is freed after the lock is released
}

std::shared_ptr<const FleetSnapshot> SnapshotBoard::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

}  // namespace loopfleet::coordinator
