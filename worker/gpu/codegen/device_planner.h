#pragma once
// DevicePlanner: plans the launches that compute a tree (docs/LOWERING.md, "GPU"). A pure function:
// the same tree always gives the same plan.

#include <expected>

#include "common/job/failure.h"
#include "common/looptree/tree/loop_tree.h"
#include "worker/gpu/codegen/device_plan.h"
#include "worker/lowering/kernel_plan.h"

namespace loopfleet::worker {

// Failure: LIMIT_FOOTPRINT.
std::expected<DevicePlan, Failure> PlanDevice(const looptree::LoopTree& tree,
                                              const PlanLimits& limits = {});

}  // namespace loopfleet::worker
