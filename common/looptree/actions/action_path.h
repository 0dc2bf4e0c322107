#pragma once
// ActionPath: the actions that lead from one tree to another of the same program, so that a tree
// made by transformations can be sent as its start and a list of actions.

#include <optional>
#include <vector>

#include "common/looptree/actions/action.h"
#include "common/looptree/program/limits.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

// The shortest sequence that is known, of dialect agent under RuleSet::kStructural, from cursor 0:
// cursor moves, splits, merges, swaps of neighbours, vectorize and unroll. nullopt: none is known.
// There is none for added loops, reuse, threads, a single unrolled loop around others, or changes
// of the program. It is found by undoing: the splits of both trees are merged, then the loops are
// brought into one order.
std::optional<std::vector<Action>> ActionPath(const LoopTree& start, const LoopTree& tree,
                                              const Limits& limits = {});

}  // namespace loopfleet::looptree
