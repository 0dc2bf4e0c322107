#pragma once
// The planted bugs in dispatch order and placement: priorities, clients, deadlines, labels,
// affinity.

#include <vector>

#include "tests/simulation/planted/planted_bug.h"

namespace loopfleet::simulation {

std::vector<PlantedBugInfo> PlantedQueueBugs();

}  // namespace loopfleet::simulation
