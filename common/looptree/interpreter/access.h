#pragma once
// Access: where an operation reads. Views without loops of their own are folded, which leaves a
// tensor or a buffer and, for each of its dims, an affine function of the reader's dims.

#include <optional>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/looptree/program/program.h"
#include "common/looptree/program/view_map.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

struct Access {
  NodeId source = 0;
  std::vector<ViewIndex> index;  // per dim of the source, in its order
  // Checked in this order: the first that fails gives the element. If none fails, the indices are
  // whole and inside the source.
  std::vector<IndexGuard> guards;

  // Sums of products of these coefficients and valid indices do not overflow: terms over dims of
  // size 1 are left out, views were checked to stay inside their input, and guarded indices are
  // bounded (view_map.h).
};

// `is_folded(node)` says which views to fold.
template <class IsFolded>
Access AccessOf(const Program& program, NodeId operand, IsFolded is_folded) {
  ViewMap map = IdentityMap(program, operand);
  while (program.nodes[operand].op == Op::kView && is_folded(operand)) {
    std::optional<ViewMap> composed = ThroughView(program, operand, map);
    LF_CHECK(composed.has_value(), "view {} exceeds the bounds on its indices", operand);
    map = *std::move(composed);
    operand = program.nodes[operand].inputs[0];
  }
  return {.source = operand, .index = std::move(map.index), .guards = std::move(map.guards)};
}

// Folds the views that have no leaf in the tree.
Access AccessOf(const LoopTree& tree, NodeId operand);

}  // namespace loopfleet::looptree
