#pragma once
// Hello: which workers are welcome, and which jobs a worker that comes keeps.

#include <set>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

void OnHello(Transaction& tx, const PeerId& peer, wire::WorkerHello hello, const KeyText& key);

// The leases that the worker would list if it had received them. One granted a moment ago over its
// present connection may have crossed its message.
std::set<LeaseId> ArrivedBy(const Transaction& tx, const Worker& worker);

}  // namespace loopfleet::coordinator
