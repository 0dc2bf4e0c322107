#pragma once
// What workers can cause: they come, are heard, report, go, or fall silent.

#include <set>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

void OnWorkerSaid(Transaction& tx, WorkerSaid event);
void OnWorkerUnreachable(Transaction& tx, const WorkerUnreachable& event);

// Those that said hello with one of these keys are gone, and their jobs go to others.
void RemoveWorkersWith(Transaction& tx, const std::set<KeyText>& keys);

// Those that were silent for too long are lost, with what they have.
void LoseSilentWorkers(Transaction& tx);

}  // namespace loopfleet::coordinator
