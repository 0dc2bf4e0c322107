#include "common/looptree/tree/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/result.h"
#include "common/looptree/program/program_facts.h"
#include "common/looptree/tree/operation_check.h"

namespace loopfleet::looptree {
namespace {

std::string LoopText(const LoopTree& tree, TreeRef loop) {
  const TreeNode& node = tree.nodes()[loop];
  return fmt::format("L{} (for {} in {})", loop, tree.program().dims[node.dim].name, node.size);
}

void CheckLoop(const LoopTree& tree, TreeRef loop) {
  LF_CHECK(loop < tree.nodes().size() && tree.IsLoop(loop), "L{} is not a loop", loop);
}

bool IsInside(const LoopTree& tree, TreeRef inner, TreeRef outer) {
  return outer < inner && inner < tree.nodes()[outer].end;
}

constexpr std::size_t kAbsent = SIZE_MAX;

// The position in the node's schedule of the loop, or of its equal in another nest. Loops are equal
// if they run over the same dimension at the same depth of it, with the same size and tail (spec
// B.5).
std::size_t PositionOf(const LoopTree& tree, NodeId node, TreeRef loop) {
  const TreeNode& sought = tree.nodes()[loop];
  const auto equal = [&](TreeRef own) {
    const TreeNode& other = tree.nodes()[own];
    return other.dim == sought.dim && other.dim_depth == sought.dim_depth &&
           other.size == sought.size && other.tail == sought.tail;
  };
  const auto loops = tree.LoopsOf(node);
  const auto at = std::ranges::find_if(loops, equal);
  return at == loops.end() ? kAbsent : static_cast<std::size_t>(at - loops.begin());
}

// Calls change(loops, node) for each operation inside the loop.
template <class Change>
void ForEachOperation(const LoopTree& tree, TreeRef loop, Schedule& schedule, Change change) {
  for (TreeRef ref = loop + 1; ref < tree.nodes()[loop].end; ++ref) {
    const TreeNode& node = tree.nodes()[ref];
    if (node.kind == TreeNode::Kind::kOperation) change(schedule[node.node].loops, node.node);
  }
}

std::ptrdiff_t Offset(std::size_t position) { return static_cast<std::ptrdiff_t>(position); }

}  // namespace

Checked<LoopTree> Swap(const LoopTree& tree, TreeRef one, TreeRef other, const Limits& limits) {
  CheckLoop(tree, one);
  CheckLoop(tree, other);
  const TreeRef outer = std::min(one, other);
  const TreeRef inner = std::max(one, other);
  if (!IsInside(tree, inner, outer)) {
    return Illegal(fmt::format("{} and {} cannot be exchanged: neither is inside the other",
                               LoopText(tree, outer), LoopText(tree, inner)));
  }
  if (tree.nodes()[outer].dim == tree.nodes()[inner].dim) {
    return Illegal(fmt::format("{} and {} cannot be exchanged: they run over one dimension",
                               LoopText(tree, outer), LoopText(tree, inner)));
  }
  Schedule schedule = tree.schedule();
  ForEachOperation(tree, outer, schedule, [&](std::vector<LoopSpec>& loops, NodeId node) {
    const std::size_t first = PositionOf(tree, node, outer);
    const std::size_t second = PositionOf(tree, node, inner);
    if (first != kAbsent && second != kAbsent) std::swap(loops[first], loops[second]);
  });
  return tree.WithSchedule(std::move(schedule), limits);
}

Checked<LoopTree> SplitLoop(const LoopTree& tree, TreeRef loop, std::int64_t factor,
                            const Limits& limits) {
  CheckLoop(tree, loop);
  const TreeNode& node = tree.nodes()[loop];
  if (factor < 1 || node.size < factor) {
    return Illegal(fmt::format("{} cannot be split by {}", LoopText(tree, loop), factor));
  }
  // No overflow: elements <= the dim's size, and factor <= node.size.
  const std::int64_t elements = node.size * node.inner + node.tail;
  const std::int64_t inner = factor * node.inner;
  const LoopSpec outer_loop{.dim = node.dim, .size = elements / inner, .tail = elements % inner};
  const LoopSpec inner_loop{.dim = node.dim, .size = factor};
  Schedule schedule = tree.schedule();
  ForEachOperation(tree, loop, schedule, [&](std::vector<LoopSpec>& loops, NodeId id) {
    const std::size_t at = PositionOf(tree, id, loop);
    if (at == kAbsent) return;
    const bool reusable = loops[at].reusable;
    loops[at] = outer_loop;
    loops[at].reusable = reusable;
    loops.insert(loops.begin() + Offset(at) + 1, inner_loop);
  });
  return tree.WithSchedule(std::move(schedule), limits);
}

Checked<std::optional<LoopTree>> MergeLoop(const LoopTree& tree, TreeRef loop,
                                           const Limits& limits) {
  CheckLoop(tree, loop);
  const TreeNode& node = tree.nodes()[loop];
  TreeRef outer = node.parent;
  while (outer != kNoParent && tree.nodes()[outer].dim != node.dim) {
    outer = tree.nodes()[outer].parent;
  }
  if (outer == kNoParent) return std::nullopt;
  const TreeNode& parent = tree.nodes()[outer];
  const std::int64_t elements =
      parent.size * (node.size * node.inner + node.tail) + parent.tail;  // <= the dim's size
  const LoopSpec merged{
      .dim = node.dim, .size = elements / node.inner, .tail = elements % node.inner};
  Schedule schedule = tree.schedule();
  ForEachOperation(tree, outer, schedule, [&](std::vector<LoopSpec>& loops, NodeId id) {
    const std::size_t first = PositionOf(tree, id, outer);
    const std::size_t second = PositionOf(tree, id, loop);
    if (first == kAbsent || second == kAbsent) return;
    const bool reusable = loops[first].reusable && loops[second].reusable;
    loops[first] = merged;
    loops[first].reusable = reusable;
    loops.erase(loops.begin() + Offset(second));
  });
  LF_TRY(LoopTree result, tree.WithSchedule(std::move(schedule), limits));
  return result;
}

Checked<LoopTree> Annotate(const LoopTree& tree, TreeRef loop, Annotation annotation,
                           const Limits& limits) {
  const LoopAnnotation one[] = {{loop, annotation}};
  return Annotate(tree, one, limits);
}

Checked<LoopTree> Annotate(const LoopTree& tree, std::span<const LoopAnnotation> annotations,
                           const Limits& limits) {
  std::optional<Schedule> changed;
  for (const auto& [loop, annotation] : annotations) {
    CheckLoop(tree, loop);
    if (tree.nodes()[loop].annotation == annotation) continue;
    if (!changed) changed = tree.schedule();
    ForEachOperation(tree, loop, *changed, [&](std::vector<LoopSpec>& loops, NodeId id) {
      const std::size_t at = PositionOf(tree, id, loop);
      if (at != kAbsent) loops[at].annotation = annotation;
    });
  }
  if (!changed) return tree;
  return tree.WithSchedule(*std::move(changed), limits);
}

namespace {

std::size_t LoopCount(const LoopTree& tree) {
  std::size_t count = 0;
  for (const NodeSchedule& node : tree.schedule()) count += node.loops.size();
  return count;
}

}  // namespace

Checked<LoopTree> MergeAll(const LoopTree& tree, const Limits& limits) {
  LoopTree merged = tree;
  TreeRef ref = 0;
  while (ref < merged.nodes().size()) {
    if (merged.IsLoop(ref)) {
      LF_TRY(auto joined, MergeLoop(merged, ref, limits));
      // Each merge removes at least one loop, so this ends. The merged loops may have moved: start
      // again.
      if (joined && LoopCount(*joined) < LoopCount(merged)) {
        merged = *std::move(joined);
        ref = 0;
        continue;
      }
    }
    ++ref;
  }
  return merged;
}

Checked<LoopTree> AddLoop(const LoopTree& tree, std::optional<TreeRef> parent, DimId dim,
                          const Limits& limits) {
  if (parent) CheckLoop(tree, *parent);
  if (dim >= tree.program().dims.size()) {
    return Illegal(fmt::format("there is no dimension {}: the program has {}", dim,
                               tree.program().dims.size()));
  }
  Schedule schedule = tree.schedule();
  bool added = false;
  const auto add = [&](std::vector<LoopSpec>& loops, NodeId node) {
    if (!tree.facts().nodes[node].iteration.Has(dim)) return;
    std::size_t at = 0;
    if (parent) {
      at = PositionOf(tree, node, *parent);
      if (at == kAbsent) return;
      ++at;
    }
    loops.insert(loops.begin() + Offset(at), LoopSpec{.dim = dim, .size = 1});
    added = true;
  };
  if (parent) {
    ForEachOperation(tree, *parent, schedule, add);
  } else {
    for (NodeId node = 0; node < schedule.size(); ++node) {
      if (tree.LeafOf(node)) add(schedule[node].loops, node);
    }
  }
  if (!added) {
    return Illegal(fmt::format("no operation {}{} runs over {}", parent ? "inside " : "",
                               parent ? LoopText(tree, *parent) : "of the program",
                               tree.program().dims[dim].name));
  }
  return tree.WithSchedule(std::move(schedule), limits);
}

namespace {

Checked<LoopTree> WithoutLoop(const LoopTree& tree, TreeRef loop, std::span<const NodeId> nodes,
                              const Limits& limits) {
  const TreeNode& node = tree.nodes()[loop];
  if (node.size != 1 || node.tail != 0) {
    return Illegal(fmt::format("{} cannot be removed: it has more than one iteration; merge it",
                               LoopText(tree, loop)));
  }
  Schedule schedule = tree.schedule();
  for (const NodeId id : nodes) {
    const std::size_t at = PositionOf(tree, id, loop);
    if (at == kAbsent) continue;
    std::vector<LoopSpec>& loops = schedule[id].loops;
    if (std::ranges::count(loops, node.dim, &LoopSpec::dim) == 1) {
      return Illegal(fmt::format("{} cannot be removed: it is an operation's only loop over {}",
                                 LoopText(tree, loop), tree.program().dims[node.dim].name));
    }
    loops.erase(loops.begin() + Offset(at));
  }
  return tree.WithSchedule(std::move(schedule), limits);
}

}  // namespace

Checked<LoopTree> RemoveLoop(const LoopTree& tree, TreeRef loop, const Limits& limits) {
  CheckLoop(tree, loop);
  std::vector<NodeId> inside;
  for (TreeRef ref = loop + 1; ref < tree.nodes()[loop].end; ++ref) {
    const TreeNode& node = tree.nodes()[ref];
    if (node.kind == TreeNode::Kind::kOperation) inside.push_back(node.node);
  }
  return WithoutLoop(tree, loop, inside, limits);
}

Checked<LoopTree> RemoveLoop(const LoopTree& tree, TreeRef loop, NodeId node,
                             const Limits& limits) {
  CheckLoop(tree, loop);
  LF_TRY_VOID(CheckNode(tree, node));
  if (!tree.facts().nodes[node].iteration.Has(tree.nodes()[loop].dim)) return tree;
  if (std::ranges::find(tree.LoopsOf(node), loop) == tree.LoopsOf(node).end()) {
    return Illegal(
        fmt::format("{} does not run over {}", NodeText(tree, node), LoopText(tree, loop)));
  }
  return WithoutLoop(tree, loop, {{node}}, limits);
}

namespace {

Checked<LoopTree> SetReuse(const LoopTree& tree, TreeRef loop, bool reusable,
                           std::string_view otherwise, const Limits& limits) {
  Schedule schedule = tree.schedule();
  bool changed = false;
  ForEachOperation(tree, loop, schedule, [&](std::vector<LoopSpec>& loops, NodeId id) {
    const std::size_t at = PositionOf(tree, id, loop);
    if (at == kAbsent || loops[at].reusable == reusable) return;
    loops[at].reusable = reusable;
    changed = true;
  });
  if (!changed) return Illegal(fmt::format("{}: {}", LoopText(tree, loop), otherwise));
  return tree.WithSchedule(std::move(schedule), limits);
}

}  // namespace

Checked<LoopTree> DecreaseReuse(const LoopTree& tree, TreeRef loop, const Limits& limits) {
  CheckLoop(tree, loop);
  std::size_t operations = 0;
  for (TreeRef ref = loop + 1; ref < tree.nodes()[loop].end; ++ref) {
    operations += tree.nodes()[ref].kind == TreeNode::Kind::kOperation;
  }
  constexpr std::string_view kAlone = "no two operations share it";
  if (operations < 2) return Illegal(fmt::format("{}: {}", LoopText(tree, loop), kAlone));
  return SetReuse(tree, loop, false, kAlone, limits);
}

Checked<LoopTree> IncreaseReuse(const LoopTree& tree, TreeRef loop, const Limits& limits) {
  CheckLoop(tree, loop);
  return SetReuse(tree, loop, true, "its operations may already share it", limits);
}

namespace {

Checked<LoopTree> SetReuseOf(const LoopTree& tree, TreeRef loop, NodeId node, bool reusable,
                             const Limits& limits) {
  CheckLoop(tree, loop);
  LF_TRY_VOID(CheckNode(tree, node));
  const auto own = tree.LoopsOf(node);
  const auto at = std::ranges::find(own, loop);
  if (at == own.end()) {
    return Illegal(
        fmt::format("{} does not run over {}", NodeText(tree, node), LoopText(tree, loop)));
  }
  Schedule schedule = tree.schedule();
  LoopSpec& spec = schedule[node].loops[static_cast<std::size_t>(at - own.begin())];
  if (spec.reusable == reusable) return tree;
  spec.reusable = reusable;
  return tree.WithSchedule(std::move(schedule), limits);
}

}  // namespace

Checked<LoopTree> DisableReuse(const LoopTree& tree, TreeRef loop, NodeId node,
                               const Limits& limits) {
  return SetReuseOf(tree, loop, node, false, limits);
}

Checked<LoopTree> EnableReuse(const LoopTree& tree, TreeRef loop, NodeId node,
                              const Limits& limits) {
  return SetReuseOf(tree, loop, node, true, limits);
}

namespace {

// The loops in `order`, in the places that they have among `loops`. nullopt with `problem` set: two
// loops over one dimension would change places.
std::optional<std::vector<LoopSpec>> Reordered(const LoopTree& tree, NodeId node,
                                               std::span<const TreeRef> order,
                                               const std::vector<LoopSpec>& loops,
                                               std::string& problem) {
  std::vector<std::size_t> from;  // positions of the loops that the node has, in the new order
  for (const TreeRef loop : order) {
    const std::size_t at = PositionOf(tree, node, loop);
    if (at != kAbsent) from.push_back(at);
  }
  std::vector<std::size_t> places = from;
  std::ranges::sort(places);
  std::vector<std::size_t> before(loops.size());  // by new position: the old one
  for (std::size_t i = 0; i < loops.size(); ++i) before[i] = i;
  for (std::size_t i = 0; i < places.size(); ++i) before[places[i]] = from[i];
  std::vector<LoopSpec> reordered;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (loops[before[i]].dim != loops[before[j]].dim || before[j] < before[i]) continue;
      const auto own = tree.LoopsOf(node);
      problem = fmt::format("{} and {} cannot change places: they run over one dimension",
                            LoopText(tree, own[before[i]]), LoopText(tree, own[before[j]]));
      return std::nullopt;
    }
    reordered.push_back(loops[before[i]]);
  }
  return reordered;
}

}  // namespace

Checked<LoopTree> Reorder(const LoopTree& tree, std::span<const TreeRef> loops,
                          const Limits& limits) {
  for (const TreeRef loop : loops) CheckLoop(tree, loop);
  if (loops.size() < 2) return tree;
  std::vector<TreeRef> nested(loops.begin(), loops.end());
  std::ranges::sort(nested);
  for (std::size_t i = 1; i < nested.size(); ++i) {
    if (nested[i] == nested[i - 1]) {
      return Illegal(fmt::format("{} is named twice", LoopText(tree, nested[i])));
    }
    if (!IsInside(tree, nested[i], nested[i - 1])) {
      return Illegal(fmt::format("{} and {} have no order: neither is inside the other",
                                 LoopText(tree, nested[i - 1]), LoopText(tree, nested[i])));
    }
  }
  Schedule schedule = tree.schedule();
  std::string problem;
  ForEachOperation(tree, nested.front(), schedule, [&](std::vector<LoopSpec>& own, NodeId node) {
    if (auto reordered = Reordered(tree, node, loops, own, problem)) own = *std::move(reordered);
  });
  if (!problem.empty()) return Illegal(problem);
  return tree.WithSchedule(std::move(schedule), limits);
}

namespace {

// The loops from the root down to `loop` that the node can share, as its own.
std::vector<LoopSpec> LeadingLoops(const LoopTree& tree, NodeId node, TreeRef loop,
                                   std::map<DimId, std::int64_t>& left) {
  std::vector<TreeRef> path;
  for (TreeRef up = loop; up != kNoParent; up = tree.nodes()[up].parent) path.push_back(up);
  std::ranges::reverse(path);
  const ProgramFacts::NodeFacts& facts = tree.facts().nodes[node];
  std::vector<LoopSpec> leading;
  for (const TreeRef ref : path) {
    const TreeNode& at = tree.nodes()[ref];
    if (!facts.dims.Has(at.dim)) break;
    leading.push_back(
        {.dim = at.dim, .size = at.size, .tail = at.tail, .annotation = at.annotation});
    left[at.dim] = at.inner;
  }
  return leading;
}

// The operations that run in one body with the node and that only it, or others of them, read.
std::vector<NodeId> CompanionsOf(const LoopTree& tree, NodeId node) {
  const auto body_of = [&](NodeId id) { return tree.nodes()[*tree.LeafOf(id)].parent; };
  std::vector<NodeId> companions = {node};
  for (std::size_t i = 0; i < companions.size(); ++i) {
    for (const NodeId input : tree.program().nodes[companions[i]].inputs) {
      if (!tree.LeafOf(input) || body_of(input) != body_of(node)) continue;
      const std::vector<NodeId> readers = tree.ReadersOf(input);
      const bool alone = std::ranges::all_of(readers, [&](NodeId reader) {
        return std::ranges::find(companions, reader) != companions.end();
      });
      const bool known = std::ranges::find(companions, input) != companions.end();
      if (!alone || known || !std::ranges::equal(tree.LoopsOf(input), tree.LoopsOf(node))) continue;
      companions.push_back(input);
    }
  }
  companions.erase(companions.begin());
  return companions;
}

}  // namespace

Checked<LoopTree> ComputeAt(const LoopTree& tree, NodeId node, TreeRef loop, const Limits& limits) {
  CheckLoop(tree, loop);
  LF_TRY_VOID(CheckNode(tree, node));
  if (!tree.LeafOf(node)) {
    return Illegal(fmt::format("{} has no loops of its own", NodeText(tree, node)));
  }
  const std::vector<NodeId> readers = tree.ReadersOf(node);
  if (readers.empty()) return Illegal(fmt::format("nothing reads {}", NodeText(tree, node)));
  for (const NodeId reader : readers) {
    if (IsInside(tree, *tree.LeafOf(reader), loop)) continue;
    return Illegal(fmt::format("{} reads {} outside of {}", NodeText(tree, reader),
                               NodeText(tree, node), LoopText(tree, loop)));
  }
  std::map<DimId, std::int64_t> left;  // elements inside the leading loops
  std::vector<LoopSpec> loops = LeadingLoops(tree, node, loop, left);
  const std::size_t shared = loops.size();
  if (shared == 0) {
    TreeRef root = loop;
    while (tree.nodes()[root].parent != kNoParent) root = tree.nodes()[root].parent;
    return Illegal(
        fmt::format("{} has no results of their own for the iterations of {}, the"
                    " outermost loop around {}",
                    NodeText(tree, node), LoopText(tree, root), NodeText(tree, readers.front())));
  }
  Schedule schedule = tree.schedule();
  for (const LoopSpec& spec : schedule[node].loops) {
    const auto rest = left.find(spec.dim);
    if (rest == left.end()) {
      loops.push_back(spec);
    } else if (const std::int64_t size = std::exchange(rest->second, 1); size > 1) {
      loops.push_back({.dim = spec.dim, .size = size});
    }
  }
  for (const NodeId companion : CompanionsOf(tree, node)) schedule[companion].loops = loops;
  schedule[node].loops = std::move(loops);
  if (schedule[node].loops.size() > shared) schedule[node].loops[shared].reusable = false;
  LF_TRY(LoopTree moved, tree.WithSchedule(std::move(schedule), limits));
  const auto scope = moved.ScopeOf(node);
  if (scope && moved.nodes()[*scope].depth + 1 >= shared) return moved;
  return Illegal(fmt::format("another operation stands between {} and {}, which reads it",
                             NodeText(tree, node), NodeText(tree, readers.front())));
}

}  // namespace loopfleet::looptree
