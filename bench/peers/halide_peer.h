#pragma once
// A peer of `evaluations`: Halide's JIT, given the same loops in the same order, then run for 10 ms
// as Halide's measuring autoschedulers do. With almost no verification and no isolation, so the
// comparison favours the peer.

#include <filesystem>
#include <optional>
#include <span>

#include "common/base/result.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::bench {

// The seconds that it takes to evaluate these schedules of matrix products in a separate process
// (bench/peers/halide_evaluator.cc, found beside this executable). It first evaluates one of them
// untimed, for one-time setup. nullopt: not built, because Halide is not installed. Temporary files
// lie in `dir`.
Result<std::optional<double>> HalideSeconds(std::span<const looptree::LoopTree> trees,
                                            const std::filesystem::path& dir);

}  // namespace loopfleet::bench
