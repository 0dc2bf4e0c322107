#include "common/looptree/actions/action_path.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <utility>

#include "common/looptree/actions/walk.h"
#include "common/looptree/tree/key.h"
#include "common/looptree/tree/transform.h"

namespace loopfleet::looptree {
namespace {

constexpr std::size_t kMostOrders = 3000;  // trees that the look for an order of loops may make

// One action at a loop.
struct Edit {
  TreeRef loop = 0;
  Action action;
};

bool SameTree(const LoopTree& a, const LoopTree& b) { return CanonicalForm(a) == CanonicalForm(b); }

class PathFinder {
 public:
  PathFinder(const LoopTree& start, const LoopTree& tree, const Limits& limits)
      : start_(start), tree_(tree), limits_(limits) {}

  std::optional<std::vector<Action>> Find() const {
    if (CanonicalForm(start_.program()) != CanonicalForm(tree_.program())) return std::nullopt;
    LoopTree from = start_;
    LoopTree to = tree_;
    std::vector<Edit> edits;   // from the start on
    std::vector<Edit> undone;  // the last edit first
    while (!SameTree(from, to)) {
      if (UndoAnnotation(to, undone) || Undo(to, undone)) continue;
      if (DoAnnotation(from, edits) || Do(from, edits)) continue;
      auto swaps = Swaps(from, to);
      if (!swaps) return std::nullopt;
      edits.insert(edits.end(), swaps->begin(), swaps->end());
      break;
    }
    edits.insert(edits.end(), undone.rbegin(), undone.rend());
    return ActionsOf(edits);
  }

 private:
  std::optional<LoopTree> After(const LoopTree& tree, const Edit& edit) const {
    AgentWalk walk(Benchmark{.start = tree}, RuleSet::kStructural, edit.loop, limits_);
    if (!walk.Apply(edit.action)) return std::nullopt;
    return walk.tree();
  }

  // The loop of `before` at which the action leads to `after`.
  std::optional<Edit> Between(const LoopTree& before, const LoopTree& after,
                              const Action& action) const {
    for (TreeRef ref = 0; ref < before.nodes().size(); ++ref) {
      if (!before.IsLoop(ref)) continue;
      const Edit edit{ref, action};
      const auto reached = After(before, edit);
      if (reached && SameTree(*reached, after)) return edit;
    }
    return std::nullopt;
  }

  // Replaces `to` by a tree without one of its annotations, from which an action gives it back.
  bool UndoAnnotation(LoopTree& to, std::vector<Edit>& undone) const {
    for (const Annotation annotation : {Annotation::kVectorize, Annotation::kUnroll}) {
      for (TreeRef ref = 0; ref < to.nodes().size(); ++ref) {
        if (!to.IsLoop(ref) || to.nodes()[ref].annotation != annotation) continue;
        std::vector<LoopAnnotation> cleared = {{ref, Annotation::kNone}};
        for (TreeRef inside = ref + 1;
             annotation == Annotation::kUnroll && inside < to.nodes().size() && to.IsLoop(inside);
             ++inside) {
          cleared.push_back({inside, Annotation::kNone});
        }
        const auto before = Annotate(to, cleared, limits_);
        const Action action =
            annotation == Annotation::kUnroll ? Action(Unroll{}) : Action(Vectorize{});
        if (before && Keep(*before, to, action, undone)) return true;
      }
    }
    return false;
  }

  bool Keep(const LoopTree& before, LoopTree& to, const Action& action,
            std::vector<Edit>& undone) const {
    const auto edit = Between(before, to, action);
    if (!edit) return false;
    undone.push_back(*edit);
    to = before;
    return true;
  }

  // Clears one annotation of `from` by an action.
  bool DoAnnotation(LoopTree& from, std::vector<Edit>& edits) const {
    for (TreeRef ref = 0; ref < from.nodes().size(); ++ref) {
      if (!from.IsLoop(ref)) continue;
      const Annotation annotation = from.nodes()[ref].annotation;
      if (annotation != Annotation::kVectorize && annotation != Annotation::kUnroll) continue;
      const Edit edit{ref,
                      annotation == Annotation::kUnroll ? Action(Unroll{}) : Action(Vectorize{})};
      const auto after = After(from, edit);
      if (!after) continue;
      edits.push_back(edit);
      from = *after;
      return true;
    }
    return false;
  }

  // The nearest loop over the same dimension around it.
  static std::optional<TreeRef> Outer(const LoopTree& tree, TreeRef loop) {
    for (TreeRef up = tree.nodes()[loop].parent; up != kNoParent; up = tree.nodes()[up].parent) {
      if (tree.nodes()[up].dim == tree.nodes()[loop].dim) return up;
    }
    return std::nullopt;
  }

  // The loop of `tree` that equals `sought`, nearest to `near`.
  static std::optional<TreeRef> Equal(const LoopTree& tree, const TreeNode& sought, TreeRef near) {
    std::optional<TreeRef> nearest;
    const auto distance = [&](TreeRef ref) {
      return std::abs(static_cast<std::int64_t>(ref) - static_cast<std::int64_t>(near));
    };
    for (TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
      const TreeNode& node = tree.nodes()[ref];
      if (!tree.IsLoop(ref) || node.dim != sought.dim || node.dim_depth != sought.dim_depth ||
          node.size != sought.size || node.tail != sought.tail) {
        continue;
      }
      if (!nearest || distance(ref) < distance(*nearest)) nearest = ref;
    }
    return nearest;
  }

  // Brings a loop next to the one around it over its dimension, then merges the two: the undoing of
  // a split and of the swaps behind it.
  bool Undo(LoopTree& to, std::vector<Edit>& undone) const {
    for (TreeRef ref = 0; ref < to.nodes().size(); ++ref) {
      if (!to.IsLoop(ref) || !Outer(to, ref)) continue;
      LoopTree tree = to;
      std::vector<Edit> edits;
      if (!Unsplit(tree, ref, edits)) continue;
      undone.insert(undone.end(), edits.begin(), edits.end());
      to = std::move(tree);
      return true;
    }
    return false;
  }

  bool Unsplit(LoopTree& tree, TreeRef ref, std::vector<Edit>& edits) const {
    const TreeNode inner = tree.nodes()[ref];
    while (tree.nodes()[ref].parent != *Outer(tree, ref)) {
      const TreeRef parent = tree.nodes()[ref].parent;
      const auto before = Swap(tree, parent, ref, limits_);
      if (!before || !Keep(*before, tree, SwapDown{}, edits)) return false;
      const auto at = Equal(tree, inner, parent);
      if (!at || *at >= ref || !Outer(tree, *at)) return false;
      ref = *at;
    }
    const auto merged = MergeLoop(tree, ref, limits_);
    return merged && *merged && Keep(**merged, tree, Split{inner.size}, edits);
  }

  // Merges one loop of `from` by an action.
  bool Do(LoopTree& from, std::vector<Edit>& edits) const {
    for (TreeRef ref = 0; ref < from.nodes().size(); ++ref) {
      if (!from.IsLoop(ref) || !Outer(from, ref)) continue;
      const auto merged = After(from, {ref, Merge{}});
      if (!merged || SameTree(*merged, from)) continue;
      edits.push_back({ref, Merge{}});
      from = *merged;
      return true;
    }
    return false;
  }

  // The fewest swaps of neighbours from one tree to the other.
  std::optional<std::vector<Edit>> Swaps(const LoopTree& from, const LoopTree& to) const {
    struct Seen {
      LoopTree tree;
      std::size_t before = 0;
      Edit edit;
    };
    const std::string goal = CanonicalForm(to);
    std::map<std::string, std::size_t> known = {{CanonicalForm(from), 0}};
    std::vector<Seen> seen = {{from, 0, {}}};
    for (std::size_t at = 0; at < seen.size() && seen.size() < kMostOrders; ++at) {
      const LoopTree tree = seen[at].tree;
      for (TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
        if (!tree.IsLoop(ref)) continue;
        const Edit edit{ref, SwapDown{}};
        auto next = After(tree, edit);
        if (!next) continue;
        std::string form = CanonicalForm(*next);
        const bool is_goal = form == goal;
        if (!known.emplace(std::move(form), seen.size()).second) continue;
        seen.push_back({*std::move(next), at, edit});
        if (!is_goal) continue;
        std::vector<Edit> edits;
        for (std::size_t i = seen.size() - 1; i != 0; i = seen[i].before) {
          edits.push_back(seen[i].edit);
        }
        std::ranges::reverse(edits);
        return edits;
      }
    }
    return std::nullopt;
  }

  // The edits with the moves of the cursor between them, checked by applying them.
  std::optional<std::vector<Action>> ActionsOf(const std::vector<Edit>& edits) const {
    AgentWalk walk(Benchmark{.start = start_}, RuleSet::kStructural, 0, limits_);
    for (const Edit& edit : edits) {
      while (walk.cursor() != edit.loop) {
        const bool down = walk.cursor() < edit.loop;
        if (!walk.Apply(down ? Action(Down{}) : Action(Up{}))) return std::nullopt;
        if (down ? walk.cursor() > edit.loop : walk.cursor() < edit.loop) return std::nullopt;
      }
      if (!walk.Apply(edit.action)) return std::nullopt;
    }
    if (!SameTree(walk.tree(), tree_)) return std::nullopt;
    return std::vector<Action>(walk.history().begin(), walk.history().end());
  }

  const LoopTree& start_;
  const LoopTree& tree_;
  const Limits& limits_;
};

}  // namespace

std::optional<std::vector<Action>> ActionPath(const LoopTree& start, const LoopTree& tree,
                                              const Limits& limits) {
  return PathFinder(start, tree, limits).Find();
}

}  // namespace loopfleet::looptree
