#pragma once
// StripMining: cuts loops of a tree into strips that fit the registers. The rule is in
// docs/LOWERING.md, "Strips". The result is an ordinary tree, so later stages know nothing of
// strips. A pure function.

#include <optional>
#include <set>
#include <vector>

#include "common/looptree/tree/loop_tree.h"
#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/vector_shape.h"

namespace loopfleet::worker {

struct StripMinedTree {
  looptree::LoopTree tree;
  // By loop of `tree`: the original loop. A strip and the loop over the strips share one.
  std::vector<looptree::TreeRef> origins;
  // Loops of the original tree whose annotation "vectorize" decided the cut.
  std::set<looptree::TreeRef> effective;
};

// `plan` is the plan of `tree`. nullopt: nothing to cut.
std::optional<StripMinedTree> StripMine(const looptree::LoopTree& tree, const KernelPlan& plan,
                                        const VectorShape& shape);

}  // namespace loopfleet::worker
