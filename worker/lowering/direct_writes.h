#pragma once
// DirectWrites: a reduction whose result is only copied to an output accumulates in the output
// itself, and the copy is removed. The rule is that of docs/LOWERING.md, "Direct writes".

#include "worker/lowering/kernel_plan.h"

namespace loopfleet::worker {

// Intermediates that are no longer used keep their place in the scratch area.
void WriteDirectly(KernelPlan& plan);

}  // namespace loopfleet::worker
