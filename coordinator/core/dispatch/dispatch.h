#pragma once
// Dispatch: which job goes to which worker, and when. Runs at the end of every event.

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Grants waiting jobs to workers with free credit: retries first, then the ready queue. The worker
// that has been idle longest comes first, and those that hold jobs come last.
void GrantLeases(Transaction& tx);

// Whether anything may be granted now.
bool MayGrant(const Transaction& tx);

// Whether more outcomes may be made, beside those on their way to disk and those that the present
// event made. Without room nothing is granted.
bool HasRoomForOutcomes(const State& state, const OutcomeCommit& made = {});

}  // namespace loopfleet::coordinator
