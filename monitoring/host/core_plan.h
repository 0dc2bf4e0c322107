#pragma once
// CorePlan: which core of a host times kernels and where everything else runs. The last usable
// processor is set aside with all threads of its core, because work on one of them would share
// arithmetic units and caches with the timed kernel. Workers follow this rule, and `loopfleet
// doctor` reports its consequences.

#include <cstddef>
#include <optional>
#include <vector>

#include "common/base/result.h"
#include "monitoring/host/host_files.h"

namespace loopfleet::monitoring {

struct CorePlan {
  int slot_core = 0;
  // One thread of each other core, then the remaining threads of those. Empty: only one core is
  // usable.
  std::vector<int> others;
  std::size_t other_cores = 0;  // so many of these come first, each on a core of its own
  friend bool operator==(const CorePlan&, const CorePlan&) = default;
};

// `processors`: the usable ones, ascending. `slot_core`: times kernels; none: the last processor.
CorePlan PlanCores(const std::vector<int>& processors, const HostFiles& files,
                   std::optional<int> slot_core = std::nullopt);

// The threads on the core of `processor`, itself included, as far as the host reports them.
std::vector<int> ThreadsOfCore(int processor, const HostFiles& files);

// The processors that this thread may run on, ascending; at least one.
Result<std::vector<int>> AllowedProcessors();

}  // namespace loopfleet::monitoring
