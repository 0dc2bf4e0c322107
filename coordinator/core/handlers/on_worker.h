#pragma once
// Worker events: workers join, send heartbeats and reports, leave, or fall silent.

#include <set>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

void OnWorkerSaid(Transaction& tx, WorkerSaid event);
void OnWorkerUnreachable(Transaction& tx, const WorkerUnreachable& event);

// Removes the workers that said hello with one of these keys; their jobs go to others.
void RemoveWorkersWith(Transaction& tx, const std::set<KeyText>& keys);

// Workers silent for too long are lost, with the jobs they hold.
void LoseSilentWorkers(Transaction& tx);

}  // namespace loopfleet::coordinator
