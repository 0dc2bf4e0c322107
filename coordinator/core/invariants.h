#pragma once
// The invariants that hold between the core's tables after every event.

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Checks every table's own invariant, and that the tables agree. Aborts on a violation. Slow: for
// tests.
void CheckInvariants(const State& state);

}  // namespace loopfleet::coordinator
