#pragma once
// The core's part of the fleet's model. The shell adds storage and the recent past.

#include "common/base/clock.h"
#include "common/fleet/fleet_model.h"
#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

enum class WorkerDetail { kAll, kHealth };  // WorkerInfoOf, or WorkerHealthOf

// Cost: a copy of what is wanted of each worker, and a reason for jobs that no worker can run.
FleetModel FleetModelOf(const State& state, Moment now, WorkerDetail detail = WorkerDetail::kAll);

}  // namespace loopfleet::coordinator
