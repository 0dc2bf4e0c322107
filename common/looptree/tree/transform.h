#pragma once
// Transformations: pure functions from a tree to a tree, for scripts. Actions are these with a
// cursor. Each changes the loops of the operations inside a loop and rebuilds the tree, so nests
// may split or fuse, and a TreeRef of the old tree means nothing in the new one. The computed
// values and the elements that each operation covers never change.
//
// What changes the program too, but not what it computes, is in program_transform.h.
//
// `loop` must be a loop of the tree; otherwise the call aborts. A rejection means that the tree
// does not admit the change: kInvalidAction, or kLimit... if the result exceeds `limits`, or
// kUnsupported if a view would read an element before it is computed.

#include <cstdint>
#include <optional>
#include <span>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

// Exchanges two nested loops, in each operation inside the outer loop that has both or, in another
// nest there, their equals: the same dimension, depth of it, size and tail. Loops over one
// dimension cannot be exchanged.
Checked<LoopTree> Swap(const LoopTree& tree, TreeRef one, TreeRef other, const Limits& limits = {});

// Splits the loop in two: the inner one of size `factor`, the outer one with the remainder as tail.
// `factor` is from 1 to the loop's size.
Checked<LoopTree> SplitLoop(const LoopTree& tree, TreeRef loop, std::int64_t factor,
                            const Limits& limits = {});

// Merges the loop into the nearest enclosing loop over the same dimension, in each operation inside
// that loop that has both or their equals, as for Swap. nullopt if no such loop exists.
Checked<std::optional<LoopTree>> MergeLoop(const LoopTree& tree, TreeRef loop,
                                           const Limits& limits = {});

// Merges every loop that MergeLoop can merge, in all nests, from the first one on. Some pairs may
// remain where operations split one dimension differently: see MergeLoop.
Checked<LoopTree> MergeAll(const LoopTree& tree, const Limits& limits = {});

Checked<LoopTree> Annotate(const LoopTree& tree, TreeRef loop, Annotation annotation,
                           const Limits& limits = {});

struct LoopAnnotation {
  TreeRef loop = 0;
  Annotation annotation = Annotation::kNone;
};
// Annotates all loops at once, because a rebuild in between could renumber the rest.
Checked<LoopTree> Annotate(const LoopTree& tree, std::span<const LoopAnnotation> annotations,
                           const Limits& limits = {});

// Adds a loop of size 1 over `dim` directly inside `parent`, in each operation that has `parent`
// and runs over `dim`; without a parent, outermost in each operation that runs over `dim`. The loop
// changes no result: it can be moved, split into or annotated.
Checked<LoopTree> AddLoop(const LoopTree& tree, std::optional<TreeRef> parent, DimId dim,
                          const Limits& limits = {});

// Removes a loop of size 1 without a tail. Other loops can only be merged.
Checked<LoopTree> RemoveLoop(const LoopTree& tree, TreeRef loop, const Limits& limits = {});

// The same for one operation. A loop over a dimension that it does not run over is none of its own:
// nothing changes.
Checked<LoopTree> RemoveLoop(const LoopTree& tree, TreeRef loop, NodeId node,
                             const Limits& limits = {});

// The operations inside the loop, at any depth, no longer share it: each gets its own (spec B.3
// step 8), and buffers between them are held for the whole loop. Rejected if fewer than two
// operations are inside the loop.
Checked<LoopTree> DecreaseReuse(const LoopTree& tree, TreeRef loop, const Limits& limits = {});

// Lets the operations inside the loop share it again with the operations that follow, if those have
// an equal loop in the same place. Rejected if they already may.
Checked<LoopTree> IncreaseReuse(const LoopTree& tree, TreeRef loop, const Limits& limits = {});

// The same for one operation inside the loop; unchanged if it is so already. Rejected if the
// operation does not run over the loop.
Checked<LoopTree> DisableReuse(const LoopTree& tree, TreeRef loop, NodeId node,
                               const Limits& limits = {});
Checked<LoopTree> EnableReuse(const LoopTree& tree, TreeRef loop, NodeId node,
                              const Limits& limits = {});

// Puts the loops, which are inside each other, into the given order, outermost first: they keep
// their places in the nest, and each operation inside the outermost changes those of its loops that
// are among them or equal to one. Loops over one dimension keep their order.
Checked<LoopTree> Reorder(const LoopTree& tree, std::span<const TreeRef> loops,
                          const Limits& limits = {});

// Computes the node's result inside `loop`, which is around all that reads it: the node's leading
// loops become those around its readers, from the root down to `loop`, as far as the node runs over
// their dimensions and does not reduce over them. The rest of such a dimension is one loop inside;
// other loops stay. What ran in one body with the node, for the node alone, comes along. Rejected
// if the node runs over none of them, if another operation keeps the two apart, or if a view would
// read elements of another iteration.
Checked<LoopTree> ComputeAt(const LoopTree& tree, NodeId node, TreeRef loop,
                            const Limits& limits = {});

}  // namespace loopfleet::looptree
