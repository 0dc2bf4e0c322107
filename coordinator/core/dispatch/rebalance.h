#pragma once
// Rebalancing: asks workers to give back leases that they have not started.

#include <vector>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Asks the worker to give back those of these leases that it has not started. It finishes the
// others.
void AskBack(Transaction& tx, Worker& worker, std::vector<LeaseId> leases);

// The worker gave these back: their jobs are queued again, as if they had not been granted.
void OnReturned(Transaction& tx, Worker& worker, const wire::Returned& returned);

// If a worker idles, since GrantLeases found nothing for it, while another one holds more than it
// can start soon, asks the other one for half of its leases. To be called after GrantLeases.
void RetractFromLoaded(Transaction& tx);

}  // namespace loopfleet::coordinator
