#pragma once
// CorePlan: which core of a host times kernels and where everything else runs. The last processor
// of those that may be used is set aside, with all threads of its core: what ran on one of them
// would share the arithmetic units and the caches of the kernel that is timed, so nothing of ours
// does. One rule for workers, who follow it, and for `loopfleet doctor`, which says what follows
// from it.

#include <optional>
#include <vector>

#include "common/base/result.h"
#include "monitoring/host/host_files.h"

namespace loopfleet::monitoring {

struct CorePlan {
  int slot_core = 0;
  // One thread of each other core, then the further threads of those: whoever wants only some takes
  // the first ones, and has cores to itself. Empty: there is only one core.
  std::vector<int> others;
  friend bool operator==(const CorePlan&, const CorePlan&) = default;
};

// Of these processors, in ascending order; with another one than the last for timing, if told so.
CorePlan PlanCores(const std::vector<int>& processors, const HostFiles& files,
                   std::optional<int> slot_core = std::nullopt);

// The threads of the core of `processor`, itself included, as far as the host says so.
std::vector<int> ThreadsOfCore(int processor, const HostFiles& files);

// Those that this thread may run on, in ascending order; one at least.
Result<std::vector<int>> AllowedProcessors();

}  // namespace loopfleet::monitoring
