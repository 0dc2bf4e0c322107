#pragma once
// Flow: leases that are asked back from a worker that has not begun them.

#include <vector>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Asks the worker to give back what it has not begun of these. What it does begin it finishes.
void AskBack(Transaction& tx, Worker& worker, std::vector<LeaseId> leases);

// It gave these back: they are queued again, as if they had not been granted.
void OnReturned(Transaction& tx, Worker& worker, const wire::Returned& returned);

// Nothing is queued and a worker idles, while another one has more than it can begin soon: half of
// that is asked back.
void RetractFromLoaded(Transaction& tx);

}  // namespace loopfleet::coordinator
