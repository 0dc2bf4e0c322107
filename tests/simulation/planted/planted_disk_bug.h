#pragma once
// The planted bugs that are in storage: what it says is written, what it reads, what is left after
// a crash.

#include <vector>

#include "tests/simulation/planted/planted_bug.h"

namespace loopfleet::simulation {

std::vector<PlantedBugInfo> PlantedDiskBugs();

}  // namespace loopfleet::simulation
