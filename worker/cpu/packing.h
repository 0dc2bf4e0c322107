#pragma once
// Packing: an input that is read down its rows, which lie far apart, is copied panel by panel to a
// place where each panel lies side by side, once a run and before it is read. The rule is that of
// docs/LOWERING.md, "Packed panels".

#include <cstdint>

#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/vector_shape.h"

namespace loopfleet::worker {

// The panels lie at the end of the scratch area. What would take tensors and scratch beyond
// `footprint_bytes` is read where it is. Looks at register blocks as they will be
// emitted: to be called on a plan that nothing changes any more.
void PackPanels(KernelPlan& plan, const VectorShape& shape, std::uint64_t footprint_bytes);

}  // namespace loopfleet::worker
