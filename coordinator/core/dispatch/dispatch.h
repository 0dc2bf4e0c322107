#pragma once
// Dispatch: which job goes to which worker, and when. Runs at the end of every event.

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Gives waiting jobs to workers with free credit: jobs that are tried again first, then the ready
// queue, the worker that has been idle longest first.
void GrantLeases(Transaction& tx);

}  // namespace loopfleet::coordinator
