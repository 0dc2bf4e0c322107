#pragma once
// What must hold between the core's tables after every event.

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Every table's own invariant, and that the tables agree. Aborts otherwise. Slow: for tests.
void CheckInvariants(const State& state);

}  // namespace loopfleet::coordinator
