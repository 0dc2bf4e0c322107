#pragma once
// The planted bugs in messages, events and writes: lost, repeated, swapped or invented.

#include <vector>

#include "tests/simulation/planted/planted_bug.h"

namespace loopfleet::simulation {

std::vector<PlantedBugInfo> PlantedMessageBugs();

}  // namespace loopfleet::simulation
