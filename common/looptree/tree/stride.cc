#include "common/looptree/tree/stride.h"

namespace loopfleet::looptree {

bool IsFoldedView(const LoopTree& tree, NodeId node) {
  return tree.program().nodes[node].op == Op::kView && !tree.LeafOf(node);
}

NodeId BufferOf(const LoopTree& tree, NodeId node) {
  while (IsFoldedView(tree, node)) node = tree.program().nodes[node].inputs[0];
  return node;
}

std::optional<TreeRef> AllocationOf(const LoopTree& tree, NodeId node) {
  const NodeId buffer = BufferOf(tree, node);
  if (tree.program().nodes[buffer].op == Op::kRead) return std::nullopt;
  return tree.ScopeOf(buffer);
}

Strides StridesOf(const LoopTree& tree, NodeId node) {
  const Node& self = tree.program().nodes[node];
  Strides strides{};
  if (IsFoldedView(tree, node)) {
    const Strides input = StridesOf(tree, self.inputs[0]);
    for (const ViewIndex& index : self.view) {
      for (const AffineTerm& term : index.terms) {
        strides[term.dim] += static_cast<double>(term.coefficient) /
                             static_cast<double>(index.divisor) * input[index.input_dim];
      }
    }
    return strides;
  }
  const bool is_argument = self.op == Op::kRead;
  double stride = 1;
  for (auto dim = self.dims.rbegin(); dim != self.dims.rend(); ++dim) {
    strides[*dim] = stride;
    const std::int64_t extent =
        is_argument ? tree.program().dims[*dim].size : tree.BufferExtent(node, *dim);
    stride *= static_cast<double>(extent);
  }
  return strides;
}

}  // namespace loopfleet::looptree
