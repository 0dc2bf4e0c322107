#pragma once
// AccessMap: the source of a node's operand after folding reads, views and constants without loops
// of their own: a stored node with one affine index for each of its dims, or a number.
//
// LoopTree::Build has checked that views stay inside their inputs where no guard says otherwise, so
// no index leaves its tensor and no stride that matters overflows. Terms over dims of one element
// are dropped, as they are 0.

#include <cstdint>
#include <variant>
#include <vector>

#include "common/looptree/program/view_map.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

// (constant + sum of coefficient * (index along dim)) / divisor
struct AffineIndex {
  std::int64_t constant = 0;
  std::vector<looptree::AffineTerm> terms;
  std::int64_t divisor = 1;

  bool IsIdentityOf(looptree::DimId dim) const;
};

struct AccessMap {
  looptree::NodeId stored = 0;       // a read, or a node with a leaf
  std::vector<AffineIndex> indices;  // along the stored node's dims
  // The first that fails gives the element (common/looptree/interpreter/access.h).
  std::vector<looptree::IndexGuard> guards;
};

struct FoldedConstant {
  double value = 0;
  std::vector<looptree::IndexGuard> guards;  // of views of it
};

using OperandSource = std::variant<AccessMap, FoldedConstant>;

// The result of `node` itself, element by element.
AccessMap WholeOf(const looptree::Program& program, looptree::NodeId node);

// The source of `node` for a consumer that indexes it by its own dims.
OperandSource ResolveOperand(const looptree::LoopTree& tree, looptree::NodeId node);

// The input of a view that has a leaf, indexed by the view's dims.
OperandSource ResolveViewInput(const looptree::LoopTree& tree, looptree::NodeId view);

}  // namespace loopfleet::worker
