#pragma once
// Transformations that change the program together with its schedule, but not what it computes:
// copies of inputs, the order of operations, and sums in two steps. Pure functions from a tree to a
// tree, like those of transform.h; they reject what the tree does not admit with kInvalidAction, or
// kLimit... or kUnsupported as there. New operations and dimensions come after the old ones, whose
// numbers stay, unless it says otherwise.

#include <cstddef>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

// Gives the node a copy of its input number `input`: the last operation of the new program, with
// those of the node's loops that run over the input's dimensions, so made right before it is read.
Checked<LoopTree> CopyInput(const LoopTree& tree, NodeId node, std::size_t input,
                            const Limits& limits = {});

// Takes a copy out: its readers read what it copied. Operations behind it move up by one number.
// Rejected for an operation that is no copy, or one that repeats its input along a dimension.
Checked<LoopTree> DeleteCopy(const LoopTree& tree, NodeId copy, const Limits& limits = {});

// Exchanges two operations in the order in which they run, by their priorities. Rejected if one of
// them, or one between them, needs another's result.
Checked<LoopTree> SwapNodes(const LoopTree& tree, NodeId one, NodeId other,
                            const Limits& limits = {});

// Exchanges two dimensions in the memory of the node's result. Of a write it transposes the output:
// the program computes the same numbers in another order. Rejected for a read, whose memory is the
// caller's, and for dimensions that the result lacks.
Checked<LoopTree> SwapVars(const LoopTree& tree, NodeId node, DimId one, DimId other,
                           const Limits& limits = {});

// Reduces in two steps. `loop` is a loop that the node reduces over: its dimension becomes up to
// three, what is outside of the loop, the loop's iterations and what is inside. A new operation
// reduces over all but the iterations, one result for each of them; the node combines these. What
// only the node reads follows to the new dimensions, other operands are viewed. With tails, the new
// dimensions cover more than the old one: the operand is viewed, and reads as the reduction's
// initial value beyond its end. Rejected if the loop is all of its dimension.
Checked<LoopTree> Rfactor(const LoopTree& tree, NodeId node, TreeRef loop,
                          const Limits& limits = {});

}  // namespace loopfleet::looptree
