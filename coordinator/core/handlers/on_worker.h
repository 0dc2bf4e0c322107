#pragma once
// What workers can cause: they come, are heard, report, go, or fall silent.

#include <set>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

void OnWorkerSaid(Turn& turn, WorkerSaid event);
void OnWorkerUnreachable(Turn& turn, const WorkerUnreachable& event);

// Those that said hello with one of these keys are gone, and their jobs go to others.
void RemoveWorkersWith(Turn& turn, const std::set<KeyText>& keys);

// Those that were silent for too long are lost, with what they have.
void LoseSilentWorkers(Turn& turn);

}  // namespace loopfleet::coordinator
