#pragma once
// StripMining: which loops of a tree are cut into strips for the registers' sake, and the tree with
// them cut. The rule is that of docs/LOWERING.md, "Strips". What comes out is a tree like any
// other, so that everything behind it knows nothing of strips.

#include <optional>
#include <set>
#include <vector>

#include "common/looptree/tree/loop_tree.h"
#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/vector_shape.h"

namespace loopfleet::worker {

struct StripMinedTree {
  looptree::LoopTree tree;
  // By loop of `tree`: the loop it was made from. Two loops share one where a strip was cut off.
  std::vector<looptree::TreeRef> origins;
  // Loops of the tree given whose annotation "vectorize" made the choice.
  std::set<looptree::TreeRef> effective;
};

// `plan` is the tree's. nullopt: there is nothing to cut.
std::optional<StripMinedTree> StripMine(const looptree::LoopTree& tree, const KernelPlan& plan,
                                        const VectorShape& shape);

}  // namespace loopfleet::worker
