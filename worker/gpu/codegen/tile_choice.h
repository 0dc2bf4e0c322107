#pragma once
// TileChoice: decides whether a nest that is a stage by itself runs as a grid of tiles, and the
// size of the tiles. The rule is in docs/LOWERING.md, "GPU", "Tiles". A pure function.

#include <optional>

#include "worker/gpu/codegen/device_plan.h"

namespace loopfleet::worker {

std::optional<TileMapping> ChooseTile(const KernelPlan& plan, const Nest& nest);

}  // namespace loopfleet::worker
