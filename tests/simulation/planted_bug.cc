#include "tests/simulation/planted_bug.h"

namespace loopfleet::simulation {
std::span<const PlantedBugInfo> PlantedBugs() { return {}; }
const PlantedBugInfo* FindPlantedBug(std::string_view) { return nullptr; }
}  // namespace loopfleet::simulation
