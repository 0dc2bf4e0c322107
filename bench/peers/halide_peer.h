#pragma once
// The peer of `evaluations` that compiles in its own process: Halide's JIT, given the same loops in
// the same order, then run for 10 ms as its autoschedulers do when they measure. Next to nothing is
// verified, nothing is kept apart: the peer is given every advantage.

#include <filesystem>
#include <optional>
#include <span>

#include "common/base/result.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::bench {

// The seconds that evaluating these schedules of matrix products takes, in a process of its own
// beside this executable (bench/peers/halide_evaluator.cc), which does one of them before for what
// is set up but once. nullopt: that was not built, for there is no Halide here. Files go to `dir`.
Result<std::optional<double>> HalideSeconds(std::span<const looptree::LoopTree> trees,
                                            const std::filesystem::path& dir);

}  // namespace loopfleet::bench
