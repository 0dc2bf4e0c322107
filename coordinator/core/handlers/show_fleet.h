#pragma once
// The core's part of the fleet's model. The shell adds storage and the recent past.

#include "common/base/clock.h"
#include "common/fleet/fleet_model.h"
#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Cost: a copy of each worker's facts, and a few reasons for jobs that no worker can run.
FleetModel FleetModelOf(const State& state, Moment now);

}  // namespace loopfleet::coordinator
