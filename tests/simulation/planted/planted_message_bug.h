#pragma once
// The planted bugs in messages, events and writes: something lost, repeated, swapped, made up.

#include <vector>

#include "tests/simulation/planted/planted_bug.h"

namespace loopfleet::simulation {

std::vector<PlantedBugInfo> PlantedMessageBugs();

}  // namespace loopfleet::simulation
