#include "common/looptree/stride.h"

namespace loopfleet::looptree {

bool IsFoldedView(const LoopTree& tree, NodeId node) {
  return tree.program().nodes[node].op == Op::kView && !tree.LeafOf(node);
}

NodeId BufferOf(const LoopTree& tree, NodeId node) {
  while (IsFoldedView(tree, node)) node = tree.program().nodes[node].inputs[0];
  return node;
}

Strides StridesOf(const LoopTree& tree, NodeId node) {
  const Node& self = tree.program().nodes[node];
  Strides strides{};
  if (IsFoldedView(tree, node)) {
    const Strides input = StridesOf(tree, self.inputs[0]);
    for (const ViewIndex& index : self.view) {
      for (const AffineTerm& term : index.terms) {
        strides[term.dim] += static_cast<double>(term.coefficient) * input[index.input_dim];
      }
    }
    return strides;
  }
  double stride = 1;
  for (auto dim = self.dims.rbegin(); dim != self.dims.rend(); ++dim) {
    strides[*dim] = stride;
    stride *= static_cast<double>(tree.BufferExtent(node, *dim));
  }
  return strides;
}

}  // namespace loopfleet::looptree
