#include "common/looptree/actions/move.h"

#include <algorithm>

namespace loopfleet::looptree {
namespace {

bool IsLoop(const LoopTree& tree, TreeRef ref) {
  return tree.nodes()[ref].kind == TreeNode::Kind::kLoop;
}

}  // namespace

std::optional<TreeRef> LoopAbove(const LoopTree& tree, TreeRef from, RuleSet rules) {
  const auto count = static_cast<TreeRef>(tree.nodes().size());
  if (rules != RuleSet::kStructural) {
    if (from == 0 || from >= count || !IsLoop(tree, from - 1)) return std::nullopt;
    return from - 1;
  }
  for (TreeRef ref = std::min(from, count); ref-- > 0;) {
    if (IsLoop(tree, ref)) return ref;
  }
  return std::nullopt;
}

std::optional<TreeRef> LoopBelow(const LoopTree& tree, TreeRef from, RuleSet rules) {
  const auto count = static_cast<TreeRef>(tree.nodes().size());
  if (rules != RuleSet::kStructural) {
    if (from >= count || from + 1 >= count || !IsLoop(tree, from + 1)) return std::nullopt;
    return from + 1;
  }
  for (TreeRef ref = from; ++ref < count;) {
    if (IsLoop(tree, ref)) return ref;
  }
  return std::nullopt;
}

}  // namespace loopfleet::looptree
