#pragma once
// JoinSplits: makes one loop of loops over the same dim that stand right inside each other. They
// visit the same elements in the same order as the one loop does, so that a loop which was split
// and not moved gets the code of a loop that was not split. docs/LOWERING.md, "Splits", says which
// splits are kept, because they tell later steps something. A pure function.

#include <optional>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

struct JoinedTree {
  looptree::LoopTree tree;
  // By loop of `tree`: the original loop, the outermost one of those that were joined.
  std::vector<looptree::TreeRef> origins;
};

// nullopt: there is nothing to join. Loops with an annotation are left as they are.
std::optional<JoinedTree> JoinSplits(const looptree::LoopTree& tree);

}  // namespace loopfleet::worker
