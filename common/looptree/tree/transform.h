#pragma once
// Transformations: pure functions from a tree to a tree, for scripts; actions are these plus a
// cursor. Each changes the loops of the operations inside a loop, then rebuilds, so nests may fall
// apart or fuse, and references into the old tree mean nothing in the new one. What is computed
// never changes, nor how many elements any operation covers.
//
// `loop` must be a loop of the tree: anything else is a mistake of the caller's and aborts. A
// rejection means that the tree does not admit the change; it is kInvalidAction unless the result
// goes beyond `limits` (kLimit...) or a view would read what is not computed yet (kUnsupported).

#include <cstdint>
#include <optional>
#include <span>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

// Exchanges two loops, one inside the other, in each operation inside the outer one that has both
// or, in another nest there, their equals: the same dimension, depth of it, size and tail. Loops
// over one dimension cannot be exchanged.
Checked<LoopTree> Swap(const LoopTree& tree, TreeRef one, TreeRef other, const Limits& limits = {});

// The loop becomes two: the inner one of size `factor`, the outer one with what is left over as
// tail. `factor` is from 1 to the loop's size.
Checked<LoopTree> SplitLoop(const LoopTree& tree, TreeRef loop, std::int64_t factor,
                            const Limits& limits = {});

// The loop is joined to the nearest loop around it over the same dimension, in each operation
// inside that one that has both or their equals, as for Swap; nothing to join: nullopt.
Checked<std::optional<LoopTree>> MergeLoop(const LoopTree& tree, TreeRef loop,
                                           const Limits& limits = {});

// Joins every loop that MergeLoop can join, in all nests, from the first one on. Where operations
// split one dimension differently some pairs may remain: see MergeLoop.
Checked<LoopTree> MergeAll(const LoopTree& tree, const Limits& limits = {});

Checked<LoopTree> Annotate(const LoopTree& tree, TreeRef loop, Annotation annotation,
                           const Limits& limits = {});

struct LoopAnnotation {
  TreeRef loop = 0;
  Annotation annotation = Annotation::kNone;
};
// All at once, so that each names a loop of `tree`: rebuilding between them could renumber the
// rest.
Checked<LoopTree> Annotate(const LoopTree& tree, std::span<const LoopAnnotation> annotations,
                           const Limits& limits = {});

// Puts a loop of size 1 over `dim` directly inside `parent`, in each operation that has `parent`
// and runs over `dim`; without a parent, outermost in each operation that runs over `dim`. It
// changes nothing that is computed: it is a place to move, split into or annotate.
Checked<LoopTree> AddLoop(const LoopTree& tree, std::optional<TreeRef> parent, DimId dim,
                          const Limits& limits = {});

// Takes out a loop that goes round once: size 1, no tail. (Other loops can be merged away.)
Checked<LoopTree> RemoveLoop(const LoopTree& tree, TreeRef loop, const Limits& limits = {});

// The operations directly or further inside the loop share it no longer: each gets its own (spec
// B.3 step 8), and what they hand to each other is held for the whole loop. Rejected if the loop
// holds one operation only.
Checked<LoopTree> DecreaseReuse(const LoopTree& tree, TreeRef loop, const Limits& limits = {});

// The operations inside the loop may share it again with what follows, if that has an equal loop in
// the same place. Rejected if they already may.
Checked<LoopTree> IncreaseReuse(const LoopTree& tree, TreeRef loop, const Limits& limits = {});

}  // namespace loopfleet::looptree
