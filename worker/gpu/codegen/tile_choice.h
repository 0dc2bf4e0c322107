#pragma once
// TileChoice: whether a nest that is a kernel by itself runs as a grid of tiles, and how large they
// are. The rule is that of docs/LOWERING.md, "GPU", "Tiles".

#include <optional>

#include "worker/gpu/codegen/device_plan.h"

namespace loopfleet::worker {

std::optional<TileMapping> ChooseTile(const KernelPlan& plan, const Nest& nest);

}  // namespace loopfleet::worker
