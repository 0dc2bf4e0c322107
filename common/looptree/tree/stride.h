#pragma once
// Strides: how far apart in memory neighbours along each dimension are, in the buffer that an
// operand is read from.

#include <array>
#include <optional>

#include "common/looptree/program/dim_set.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

// By dimension, in elements; double, so that no product of a view's coefficients overflows.
using Strides = std::array<double, kMaxDims>;

// True for a view without loops: its readers reach straight into what it views.
bool IsFoldedView(const LoopTree& tree, NodeId node);
// The node whose buffer `node` is read from: itself, or what folded views lead to.
NodeId BufferOf(const LoopTree& tree, NodeId node);
// The loop inside which that buffer is allocated; nullopt: it is there all the time. A read's is:
// it is the argument itself, also where the read has loops (spec B.8).
std::optional<TreeRef> AllocationOf(const LoopTree& tree, NodeId node);
// Of `node` in that buffer; 0 for a dimension that it lacks.
Strides StridesOf(const LoopTree& tree, NodeId node);

}  // namespace loopfleet::looptree
