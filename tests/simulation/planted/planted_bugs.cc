#include "tests/simulation/planted/planted_bugs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/simulation/planted/planted_disk_bug.h"
#include "tests/simulation/planted/planted_message_bug.h"
#include "tests/simulation/planted/planted_queue_bug.h"

namespace loopfleet::simulation {
namespace {

std::vector<PlantedBugInfo> AllBugs() {
  std::vector<PlantedBugInfo> all = PlantedMessageBugs();
  for (PlantedBugInfo& bug : PlantedQueueBugs()) all.push_back(std::move(bug));
  for (PlantedBugInfo& bug : PlantedDiskBugs()) all.push_back(std::move(bug));
  return all;
}

}  // namespace

std::span<const PlantedBugInfo> PlantedBugs() {
  static const std::vector<PlantedBugInfo> kBugs = AllBugs();
  return kBugs;
}

const PlantedBugInfo* FindPlantedBug(std::string_view name) {
  const auto found = std::ranges::find(PlantedBugs(), name, &PlantedBugInfo::name);
  return found == PlantedBugs().end() ? nullptr : &*found;
}

}  // namespace loopfleet::simulation
