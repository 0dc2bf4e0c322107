#pragma once
// Quads: four neighbouring iterations of a loop that one thread runs together, so that what lies
// side by side is loaded and stored 128 bits at a time. The rule is that of docs/LOWERING.md,
// "GPU", "Quads". Nothing here knows of LLVM.

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "worker/lowering/kernel_plan.h"

namespace loopfleet::worker {

inline constexpr std::int64_t kQuad = 4;

// Bodies that run one after the other, each once: what loops of a single iteration hold is among
// them. Nullopt if anything else is.
using StraightLine = std::vector<const Body*>;
std::optional<StraightLine> StraightLineOf(const KernelPlan& plan, const std::vector<Step>& steps);

// `access` moves by one element along `loop`, and stands at a multiple of 16 bytes wherever `loop`
// stands at a multiple of four.
bool MovesInQuads(const KernelPlan& plan, const Access& access, LoopId loop);

// Four iterations of `loop`, each of which is `line`, may be run one after the other with all that
// moves in quads loaded before the first and stored after the last; and something does.
// `registers`: buffers that have no memory.
bool RunsInQuads(const KernelPlan& plan, const std::set<BufferId>& registers,
                 const StraightLine& line, LoopId loop);

}  // namespace loopfleet::worker
