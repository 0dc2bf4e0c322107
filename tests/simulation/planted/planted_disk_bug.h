#pragma once
// The planted bugs in storage: in what it reports as written, what it reads, and what a crash
// leaves.

#include <vector>

#include "tests/simulation/planted/planted_bug.h"

namespace loopfleet::simulation {

std::vector<PlantedBugInfo> PlantedDiskBugs();

}  // namespace loopfleet::simulation
