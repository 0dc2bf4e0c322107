#pragma once
// JoinSplits: makes one loop of loops over the same dim that stand right inside each other. They
// visit the same elements in the same order as the one loop does, so that a loop which was split
// and not moved gets the code of a loop that was not split. docs/LOWERING.md, "Splits", says which
// splits are kept, because they tell later steps something. A pure function.

#include <cstdint>
#include <optional>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

struct JoinedTree {
  looptree::LoopTree tree;
  // By loop of `tree`: the original loop, the outermost one of those that were joined.
  std::vector<looptree::TreeRef> origins;
  // By original loop: the outermost one of those that it was joined with; itself if with none.
  std::vector<looptree::TreeRef> outermost;
};

// `threads`: how many the kernel may use. The joined loop is `vectorize` if any part was, else
// `unroll` if any was. `thread` is dropped for one thread; with several, such loops are not joined.
// nullopt: there is nothing to join, or joining would change which loops operations share.
std::optional<JoinedTree> JoinSplits(const looptree::LoopTree& tree, std::uint32_t threads = 1);

}  // namespace loopfleet::worker
