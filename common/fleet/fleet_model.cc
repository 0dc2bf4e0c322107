#include "common/fleet/fleet_model.h"

#include <algorithm>

namespace loopfleet {

using wire::WorkerState;

std::size_t FleetModel::Workers(WorkerState state) const {
  return static_cast<std::size_t>(std::ranges::count(workers, state, &wire::WorkerInfo::state));
}

wire::FleetInfo FleetInfoOf(const FleetModel& fleet) {
  const auto workers = [&](WorkerState state) {
    return static_cast<std::uint32_t>(fleet.Workers(state));
  };
  wire::FleetInfo info{.epoch = fleet.epoch,
                       .queued_cpu = fleet.Queued(Placement::kCpu),
                       .queued_cuda = fleet.Queued(Placement::kCuda),
                       .queued_any = fleet.Queued(Placement::kAny),
                       .leased_jobs = fleet.leased,
                       .workers_ready = workers(WorkerState::kReady),
                       .workers_draining = workers(WorkerState::kDraining),
                       .workers_lost = workers(WorkerState::kLost),
                       .workers_quarantined = workers(WorkerState::kQuarantined),
                       .storage_full = fleet.storage_trouble == ErrorKind::kFull,
                       .stopping = fleet.is_stopping};
  if (fleet.oldest_queued) info.oldest_queued_at = WallTime(*fleet.oldest_queued);
  return info;
}

}  // namespace loopfleet
