#pragma once
// Packing: copies an input whose rows lie far apart, and which a block reads row after row, into
// contiguous panels, once per run and before it is read. The rule is in docs/LOWERING.md, "Packed
// panels".

#include <cstdint>

#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/vector_shape.h"

namespace loopfleet::worker {

// Appends the panels to the scratch area. An input whose panels would take tensors and scratch
// beyond `footprint_bytes` stays unpacked. Relies on the register blocks as they will be emitted,
// so the plan must not change after this call.
void PackPanels(KernelPlan& plan, const VectorShape& shape, std::uint64_t footprint_bytes);

}  // namespace loopfleet::worker
