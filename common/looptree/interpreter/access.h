#pragma once
// Access: where an operation reads. Views without loops of their own are folded, which leaves a
// tensor or a buffer and, for each of its dims, an affine function of the reader's dims.

#include <vector>

#include "common/looptree/program/program.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

struct Access {
  NodeId source = 0;
  std::vector<ViewIndex> index;  // per dim of the source, in its order

  // Sums of products of these coefficients and valid indices do not overflow: terms over dims of
  // size 1 are left out, and views were checked to stay inside their input.
};

// `is_folded(node)` says which views to fold.
template <class IsFolded>
Access AccessOf(const Program& program, NodeId operand, IsFolded is_folded);

// Folds the views that have no leaf in the tree.
Access AccessOf(const LoopTree& tree, NodeId operand);

// `outer` with each of its dims replaced by what `inner` maps that dim to.
std::vector<ViewIndex> Composed(const Program& program, const std::vector<ViewIndex>& outer,
                                const std::vector<ViewIndex>& inner);

template <class IsFolded>
Access AccessOf(const Program& program, NodeId operand, IsFolded is_folded) {
  Access access{.source = operand};
  for (const DimId dim : program.nodes[operand].dims) access.index.push_back({dim, {{dim, 1}}, 0});
  while (program.nodes[access.source].op == Op::kView && is_folded(access.source)) {
    const Node& view = program.nodes[access.source];
    std::vector<ViewIndex> in_order;
    for (const DimId dim : program.nodes[view.inputs[0]].dims) {
      for (const ViewIndex& index : view.view) {
        if (index.input_dim == dim) in_order.push_back(index);
      }
    }
    access.index = Composed(program, in_order, access.index);
    access.source = view.inputs[0];
  }
  return access;
}

}  // namespace loopfleet::looptree
