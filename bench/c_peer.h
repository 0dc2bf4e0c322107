#pragma once
// The peer of `evaluations`: how a schedule is evaluated where its backend is a C compiler
// (LoopTune's "cpp" backend and others): write the loops as C, run `cc -O3 -shared`, open the
// library, time it for about 10 ms. Nothing is verified, nothing is kept apart: the peer is given
// every advantage.

#include <filesystem>
#include <string>

#include "common/base/result.h"
#include "common/looptree/loop_tree.h"

namespace loopfleet::bench {

// The loops of the tree's one product, in their order and with their splits, as a function
// `void kernel(const float*, const float*, float*)`. kInvalid: the program is no matrix product.
Result<std::string> MatmulInC(const looptree::LoopTree& tree);

// Evaluates it the peer's way; gives nanoseconds for one run. Files go to `dir`, and away again.
Result<double> EvaluateInC(const looptree::LoopTree& tree, const std::filesystem::path& dir);

}  // namespace loopfleet::bench
