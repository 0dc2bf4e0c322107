#pragma once
// Planted bugs about audits. See planted_bug.h.

#include <vector>

#include "tests/simulation/planted/planted_bug.h"

namespace loopfleet::simulation {

std::vector<PlantedBugInfo> PlantedAuditBugs();

}  // namespace loopfleet::simulation
