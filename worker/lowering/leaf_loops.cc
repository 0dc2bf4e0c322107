#include "worker/lowering/leaf_loops.h"

#include <algorithm>
#include <span>

namespace loopfleet::worker {

using looptree::LoopTree;
using looptree::NodeId;
using looptree::TreeNode;
using looptree::TreeRef;

std::vector<NodeId> LeavesOf(const LoopTree& tree) {
  std::vector<NodeId> leaves;
  for (const TreeNode& node : tree.nodes()) {
    if (node.kind == TreeNode::Kind::kOperation) leaves.push_back(node.node);
  }
  return leaves;
}

bool HasOnlyOwnLoops(const LoopTree& tree, NodeId node) {
  return tree.LoopsOf(node).size() == tree.nodes()[*tree.LeafOf(node)].depth;
}

std::size_t SharedLoops(const LoopTree& tree, NodeId a, NodeId b) {
  const std::span<const TreeRef> left = tree.LoopsOf(a);
  const std::span<const TreeRef> right = tree.LoopsOf(b);
  return static_cast<std::size_t>(std::ranges::mismatch(left, right).in1 - left.begin());
}

}  // namespace loopfleet::worker
