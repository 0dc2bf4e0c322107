#pragma once
// Draining by an operator: the workers that a target names finish the jobs they started, give the
// rest back, and take no new ones until they are resumed.
//
// A target is a host name (every worker on it, including later ones), a worker's name, or a
// worker's id. An id belongs to one run of a daemon, so a drain by id has no effect once that
// daemon ends. Drains are stored and survive a restart of the coordinator.

#include <string>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// The reply is sent once the change is on disk.
void OnSetDrain(Transaction& tx, const Asker& asker, const wire::SetDrain& set);
// Replies with the workers that the target names, in their present state.
void ReplyWithConcerned(Transaction& tx, const Asker& asker, const std::string& target);

// Sets the drain that applies to a worker that has said hello; if one does, asks for its leases
// back.
void ApplyDrains(Transaction& tx, Worker& worker);

}  // namespace loopfleet::coordinator
