#include "common/looptree/actions/move.h"

#include <algorithm>

namespace loopfleet::looptree {
std::optional<TreeRef> LoopAbove(const LoopTree& tree, TreeRef from, RuleSet rules) {
  const auto count = static_cast<TreeRef>(tree.nodes().size());
  if (rules != RuleSet::kStructural) {
    if (from == 0 || from >= count || !tree.IsLoop(from - 1)) return std::nullopt;
    return from - 1;
  }
  for (TreeRef ref = std::min(from, count); ref-- > 0;) {
    if (tree.IsLoop(ref)) return ref;
  }
  return std::nullopt;
}

std::optional<TreeRef> LoopBelow(const LoopTree& tree, TreeRef from, RuleSet rules) {
  const auto count = static_cast<TreeRef>(tree.nodes().size());
  if (rules != RuleSet::kStructural) {
    if (from >= count || from + 1 >= count || !tree.IsLoop(from + 1)) return std::nullopt;
    return from + 1;
  }
  for (TreeRef ref = from; ++ref < count;) {
    if (tree.IsLoop(ref)) return ref;
  }
  return std::nullopt;
}

}  // namespace loopfleet::looptree
