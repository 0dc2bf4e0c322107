#pragma once
// AccessMap: where an operand of a node comes from once reads, views and constants without loops of
// their own are folded away: a stored node and one affine index for each of its dims, or a number.

#include <cstdint>
#include <expected>
#include <variant>
#include <vector>

#include "common/job/failure.h"
#include "common/looptree/loop_tree.h"

namespace loopfleet::worker {

// constant + sum of coefficient * (index along dim)
struct AffineIndex {
  std::int64_t constant = 0;
  std::vector<looptree::AffineTerm> terms;

  bool IsIdentityOf(looptree::DimId dim) const;
};

struct AccessMap {
  looptree::NodeId stored = 0;       // a read, or a node with a leaf
  std::vector<AffineIndex> indices;  // along the stored node's dims
};

struct FoldedConstant {
  double value = 0;
};

using OperandSource = std::variant<AccessMap, FoldedConstant>;

// `node` seen from a consumer that indexes it by its own dims.
// UNSUPPORTED if a view reaches outside what it views, or a node without a leaf computes something.
std::expected<OperandSource, Failure> ResolveOperand(const looptree::LoopTree& tree,
                                                     looptree::NodeId node);

// The input of a view that has a leaf, indexed by the view's dims.
std::expected<OperandSource, Failure> ResolveViewInput(const looptree::LoopTree& tree,
                                                       looptree::NodeId view);

}  // namespace loopfleet::worker
