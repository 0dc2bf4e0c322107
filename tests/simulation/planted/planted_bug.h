#pragma once
// PlantedBug: a deliberate mistake at an interface of the core: its events, its effects, or the
// answers of its storage. The runner counts the seeds until the checker finds it. Not part of the
// product.

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

  // Called before the coordinator starts. The checker keeps the original limits.
  virtual void OnLimits(coordinator::Limits&) {}
  // Called before the core handles the event. May insert events before it, or remove it.
  virtual void OnEvents(std::vector<coordinator::Event>&, const coordinator::Core&) {}
  virtual void OnMoment(coordinator::Moment&) {}
  // Called with the core's effects before they are carried out.
  virtual void OnEffects(coordinator::Effects&, const coordinator::Core&) {}
  // The disk as the coordinator sees it; null: unchanged.
  virtual std::unique_ptr<Disk> Wrap(Disk&) { return nullptr; }
};

struct PlantedBugInfo {
  std::string_view name;
  std::string_view what;
  std::function<std::unique_ptr<PlantedBug>()> make;
  Medium medium = Medium::kModel;  // kSqlite: a bug of the file system under the real storage
};

}  // namespace loopfleet::simulation
