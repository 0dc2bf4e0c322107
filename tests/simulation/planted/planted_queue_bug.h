#pragma once
// The planted bugs about whose turn it is, and who may run what: priorities, clients, deadlines,
// labels, affinity.

#include <vector>

#include "tests/simulation/planted/planted_bug.h"

namespace loopfleet::simulation {

std::vector<PlantedBugInfo> PlantedQueueBugs();

}  // namespace loopfleet::simulation
