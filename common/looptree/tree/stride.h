#pragma once
// Strides: the distance in memory between neighbours along each dimension, in the buffer that an
// operand is read from.

#include <array>
#include <optional>

#include "common/looptree/program/dim_set.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

// Per dimension, in elements. double, so that no product of a view's coefficients overflows.
using Strides = std::array<double, kMaxDims>;

// True for a view without loops: its readers access the viewed buffer directly.
bool IsFoldedView(const LoopTree& tree, NodeId node);
// The node whose buffer `node` is read from: `node` itself, or the end of a chain of folded views.
NodeId BufferOf(const LoopTree& tree, NodeId node);
// The loop inside which that buffer is allocated; nullopt: it lives for the whole kernel. A read's
// buffer is the argument itself, even if the read has loops (spec B.8).
std::optional<TreeRef> AllocationOf(const LoopTree& tree, NodeId node);
// The strides of `node` in that buffer; 0 for a dimension that it lacks.
Strides StridesOf(const LoopTree& tree, NodeId node);

}  // namespace loopfleet::looptree
