#pragma once
// PlantedBug: a mistake, made on purpose at the seams of the core: what it is told, what it wants
// done, what its storage answers. The runner counts how many seeds it takes the checker to notice.
// None of this is in the product.

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "coordinator/core/core.h"
#include "tests/simulation/disk/disk.h"
#include "tests/simulation/fault_mix.h"

namespace loopfleet::simulation {

class PlantedBug {
 public:
  virtual ~PlantedBug() = default;

  // Before the coordinator starts; the checker goes by what it was before.
  virtual void OnLimits(coordinator::Limits&) {}
  // The event is about to be given to the core; others may be put before it, or it taken out.
  virtual void OnEvents(std::vector<coordinator::Event>&, const coordinator::Core&) {}
  virtual void OnMoment(coordinator::Moment&) {}
  // The core wants these done.
  virtual void OnEffects(coordinator::Effects&, const coordinator::Core&) {}
  // The disk as the coordinator sees it.
  virtual std::unique_ptr<Disk> Wrap(Disk&) { return nullptr; }  // none: as it is
};

struct PlantedBugInfo {
  std::string_view name;
  std::string_view what;
  std::function<std::unique_ptr<PlantedBug>()> make;
  Medium medium = Medium::kModel;  // kSqlite: it is in the file system under the real storage
};

}  // namespace loopfleet::simulation
