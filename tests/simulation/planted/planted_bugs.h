#pragma once
// All planted bugs.

#include <span>
#include <string_view>

#include "tests/simulation/planted/planted_bug.h"

namespace loopfleet::simulation {

std::span<const PlantedBugInfo> PlantedBugs();
const PlantedBugInfo* FindPlantedBug(std::string_view name);  // null: there is none

}  // namespace loopfleet::simulation
