#pragma once
// Which loops enclose the leaves of a tree, and which they share: what a rewriting has to keep.

#include <cstddef>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

// The operations with leaves, in execution order.
std::vector<looptree::NodeId> LeavesOf(const looptree::LoopTree& tree);

// True if every loop enclosing the leaf is one of its own.
bool HasOnlyOwnLoops(const looptree::LoopTree& tree, looptree::NodeId node);

// The number of loops that enclose both leaves.
std::size_t SharedLoops(const looptree::LoopTree& tree, looptree::NodeId a, looptree::NodeId b);

}  // namespace loopfleet::worker
