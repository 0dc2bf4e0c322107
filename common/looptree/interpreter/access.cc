#include "common/looptree/interpreter/access.h"

namespace loopfleet::looptree {

Access AccessOf(const LoopTree& tree, NodeId operand) {
  return AccessOf(tree.program(), operand, [&](NodeId node) { return !tree.LeafOf(node); });
}

}  // namespace loopfleet::looptree
