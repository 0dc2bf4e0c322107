#pragma once
// Draining by an operator: workers that a target names finish what they have begun, give the rest
// back, and take nothing new until they are resumed.
//
// A target is the name of a host (every worker of it, also those that start later), the name of a
// worker, or its id: a daemon's, so such a drain ends to matter when the daemon does. It is stored:
// a restarted coordinator knows it.

#include <string>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// Answered once it is on disk.
void OnSetDrain(Transaction& tx, const Asker& asker, const wire::SetDrain& set);
// The workers that the target names, as they are now.
void ReplyWithConcerned(Transaction& tx, const Asker& asker, const std::string& target);

// Which drain stands for a worker that has said hello; gives its work back if there is one.
void ApplyDrains(Transaction& tx, Worker& worker);

}  // namespace loopfleet::coordinator
