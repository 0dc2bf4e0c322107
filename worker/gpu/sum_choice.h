#pragma once
// SumChoice: whether a nest that is a kernel by itself, and has few points with long sums, is added
// up by many threads to a point. The rule is that of docs/LOWERING.md, "GPU", "Sums".

#include <optional>

#include "worker/gpu/device_plan.h"

namespace loopfleet::worker {

// Of its first kernel.
std::optional<SumMapping> ChooseSum(const KernelPlan& plan, const Nest& nest);

}  // namespace loopfleet::worker
