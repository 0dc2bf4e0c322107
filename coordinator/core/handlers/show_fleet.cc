#include "coordinator/core/handlers/show_fleet.h"

#include <optional>

#include "coordinator/core/dispatch/no_matching_worker.h"
#include "coordinator/core/handlers/worker_info.h"

namespace loopfleet::coordinator {
namespace {

// The most reasons given, and the most demands examined for them: the count of unserved jobs is a
// lower bound. A snapshot taken twice a second must not grow with the demands.
constexpr std::size_t kMaxReasons = 4;
constexpr std::size_t kMaxDemands = 64;
constexpr std::size_t kManyWorkers = 100;

void AddUnserved(const State& state, FleetModel& fleet) {
  // A reason compares its demand with every worker.
  const std::size_t most_reasons = state.workers.size() > kManyWorkers ? 1 : kMaxReasons;
  for (const Demand& demand : state.ready.Demands(kMaxDemands)) {
    if (!demand.only.is_nil()) break;                 // these come last (placement.h)
    if (state.workers.IsServedNow(demand)) continue;  // a drain may be forgotten
    fleet.unserved_jobs += state.ready.Size(demand);
    if (fleet.unserved_reasons.size() == most_reasons) continue;
    fleet.unserved_reasons.push_back(WhyUnschedulable(state.workers, demand, Nanos{0}));
  }
}

}  // namespace

FleetModel FleetModelOf(const State& state, Moment now, WorkerDetail detail) {
  FleetModel fleet{.epoch = state.epoch,
                   .is_stopping = state.service == Service::kDraining,
                   .queued = {state.ready.Size(Placement::kCpu), state.ready.Size(Placement::kCuda),
                              state.ready.Size(Placement::kAny)},
                   .running_batches = state.batches.size()};
  if (const std::optional<Instant> oldest = state.queued_since.Oldest()) {
    fleet.oldest_queued = now.wall.time_since_epoch() - (now.instant - *oldest);
  }
  fleet.workers.reserve(state.workers.size());
  for (const auto& [id, worker] : state.workers.all()) {
    fleet.leased += worker.running.size();
    fleet.workers.push_back(detail == WorkerDetail::kAll ? WorkerInfoOf(worker, now.instant)
                                                         : WorkerHealthOf(worker));
  }
  AddUnserved(state, fleet);
  return fleet;
}

}  // namespace loopfleet::coordinator
