#pragma once
// Where a cursor may move from a loop, by rule set. Moves never change the tree.

#include <optional>

#include "common/looptree/actions/walk.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

// The loop before or after `from` in pre-order. The original's rules stop at an operation; the
// structural rules step over it. `from` need not be a loop or even in the tree: after a swap the
// cursor's number is looked up in a tree of another shape.
std::optional<TreeRef> LoopAbove(const LoopTree& tree, TreeRef from, RuleSet rules);
std::optional<TreeRef> LoopBelow(const LoopTree& tree, TreeRef from, RuleSet rules);

}  // namespace loopfleet::looptree
