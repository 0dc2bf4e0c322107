#pragma once
// Dispatch: which job goes to which worker, and when. Runs at the end of every event.

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Grants waiting jobs to workers with free credit: retries first, then the ready queue. The worker
// that has been idle longest comes first.
void GrantLeases(Transaction& tx);

}  // namespace loopfleet::coordinator
