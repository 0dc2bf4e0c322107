#pragma once
// Transformations: pure functions from a tree to a tree. Actions are these plus a cursor. Each
// changes the loops of the operations inside a loop, then rebuilds, so nests may fall apart or
// fuse. A rejection means that the tree does not admit the change; it is kInvalidAction unless the
// result goes beyond the limits.

#include <cstdint>
#include <optional>
#include <span>

#include "common/looptree/loop_tree.h"

namespace loopfleet::looptree {

// Exchanges two loops, one inside the other, in each operation that has both. Loops over one
// dimension cannot be exchanged.
Checked<LoopTree> Swap(const LoopTree& tree, TreeRef one, TreeRef other, const Limits& limits = {});

// The loop becomes two: the inner one of size `factor`, the outer one with what is left over as
// tail.
Checked<LoopTree> SplitLoop(const LoopTree& tree, TreeRef loop, std::int64_t factor,
                            const Limits& limits = {});

// The loop is joined to the nearest loop around it over the same dimension; nothing to join:
// nullopt.
Checked<std::optional<LoopTree>> MergeLoop(const LoopTree& tree, TreeRef loop,
                                           const Limits& limits = {});

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

}  // namespace loopfleet::looptree
