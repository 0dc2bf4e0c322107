#include "worker/lowering/join_splits.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "worker/lowering/leaf_loops.h"

namespace loopfleet::worker {
namespace {

using looptree::Annotation;
using looptree::DimId;
using looptree::LoopSpec;
using looptree::LoopTree;
using looptree::NodeId;
using looptree::Schedule;
using looptree::TreeNode;
using looptree::TreeRef;

class Joiner {
 public:
  Joiner(const LoopTree& tree, std::uint32_t threads)
      : tree_(tree), leaves_(LeavesOf(tree)), has_threads_(threads > 1) {
    for (const looptree::Node& node : tree.program().nodes) {
      if (!node.dims.empty()) contiguous_dims_.insert(node.dims.back());
    }
    for (TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
      joins_outer_.push_back(JoinsOuter(ref));
    }
  }

  std::optional<JoinedTree> Make() {
    if (std::ranges::find(joins_outer_, true) == joins_outer_.end()) return std::nullopt;
    Schedule schedule = tree_.schedule();
    for (const NodeId node : leaves_) schedule[node].loops = Joined(node, schedule[node].loops);
    KeepApart(schedule);
    auto tree = tree_.WithSchedule(std::move(schedule));
    if (!tree.has_value() || !HasSameShape(*tree)) return std::nullopt;
    JoinedTree result{.tree = *std::move(tree), .origins = {}, .outermost = {}};
    for (TreeRef ref = 0; ref < joins_outer_.size(); ++ref) {
      result.outermost.push_back(joins_outer_[ref] ? result.outermost[ref - 1] : ref);
    }
    result.origins.resize(result.tree.nodes().size());
    for (const NodeId node : leaves_) {
      const std::span<const TreeRef> refs = result.tree.LoopsOf(node);
      for (std::size_t i = 0; i < refs.size(); ++i) result.origins[refs[i]] = origins_[node][i];
    }
    return result;
  }

 private:
  bool StaysApart(const TreeNode& loop) const {
    return has_threads_ && loop.annotation == Annotation::kThread;
  }

  // The annotation of a loop joined from loops annotated `a` and `b`.
  static Annotation MergedAnnotation(Annotation a, Annotation b) {
    for (const Annotation asked : {Annotation::kVectorize, Annotation::kUnroll}) {
      if (a == asked || b == asked) return asked;
    }
    return Annotation::kNone;
  }

  // Whether the loop is directly inside a loop over the same dim.
  bool IsDirectlyInsideSameDim(TreeRef ref) const {
    const std::span<const TreeNode> nodes = tree_.nodes();
    const TreeNode& loop = nodes[ref];
    if (loop.kind != TreeNode::Kind::kLoop || loop.parent == looptree::kNoParent) return false;
    const TreeNode& outer = nodes[loop.parent];
    return loop.dim == outer.dim && loop.end == outer.end && ref == loop.parent + 1 &&
           !StaysApart(loop) && !StaysApart(outer);
  }

  // Whether the loop becomes one with the loop that it stands in.
  bool JoinsOuter(TreeRef ref) const {
    const std::span<const TreeNode> nodes = tree_.nodes();
    if (!IsDirectlyInsideSameDim(ref) || !contiguous_dims_.contains(nodes[ref].dim)) return false;
    // Only a loop over single elements has its tail at the end, wherever the splits had theirs.
    TreeRef innermost = ref;
    while (IsDirectlyInsideSameDim(innermost + 1)) ++innermost;
    if (nodes[innermost].inner != 1) return false;
    const auto inside = nodes.subspan(innermost + 1, nodes[ref].end - innermost - 1);
    const bool holds_loops =
        std::ranges::find(inside, TreeNode::Kind::kLoop, &TreeNode::kind) != inside.end();
    return std::ranges::all_of(inside, [&](const TreeNode& node) {
      return node.kind == TreeNode::Kind::kLoop ||
             (HasOnlyOwnLoops(tree_, node.node) &&
              !(holds_loops && Reduces(node.node, nodes[ref].dim)));
    });
  }

  bool Reduces(NodeId node, DimId dim) const {
    const std::vector<DimId> reduced = tree_.program().ReducedDims(node);
    return std::ranges::find(reduced, dim) != reduced.end();
  }

  std::vector<LoopSpec> Joined(NodeId node, const std::vector<LoopSpec>& loops) {
    const std::span<const TreeRef> refs = tree_.LoopsOf(node);
    std::vector<LoopSpec> joined;
    for (std::size_t i = 0; i < refs.size(); ++i) {
      if (!joins_outer_[refs[i]]) {
        joined.push_back(loops[i]);
        origins_[node].push_back(refs[i]);
      } else {
        const TreeNode& first = tree_.nodes()[origins_[node].back()];
        joined.back().size = first.size * first.inner + first.tail;
        joined.back().tail = 0;
        joined.back().annotation = MergedAnnotation(joined.back().annotation, loops[i].annotation);
        joined.back().reusable = joined.back().reusable && loops[i].reusable;
      }
    }
    return joined;
  }

  // The number of loops that two leaves share, once loops are joined.
  std::size_t SharedOnceJoined(NodeId a, NodeId b) const {
    const std::span<const TreeRef> shared = tree_.LoopsOf(a).first(SharedLoops(tree_, a, b));
    return static_cast<std::size_t>(
        std::ranges::count_if(shared, [&](TreeRef ref) { return !joins_outer_[ref]; }));
  }

  // Keeps joined loops that now equal the next operation's from being shared with it.
  void KeepApart(Schedule& schedule) const {
    for (std::size_t i = 1; i < leaves_.size(); ++i) {
      std::vector<LoopSpec>& loops = schedule[leaves_[i - 1]].loops;
      const std::size_t shared = SharedOnceJoined(leaves_[i - 1], leaves_[i]);
      const bool is_joined = loops.size() != tree_.LoopsOf(leaves_[i - 1]).size() ||
                             schedule[leaves_[i]].loops.size() != tree_.LoopsOf(leaves_[i]).size();
      if (is_joined && shared < loops.size() && shared < schedule[leaves_[i]].loops.size()) {
        loops[shared].reusable = false;
      }
    }
  }

  bool HasSameShape(const LoopTree& made) const {
    if (LeavesOf(made) != leaves_) return false;
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      const NodeId node = leaves_[i];
      if (HasOnlyOwnLoops(tree_, node) != HasOnlyOwnLoops(made, node)) return false;
      if (i == 0) continue;
      if (SharedLoops(made, leaves_[i - 1], node) != SharedOnceJoined(leaves_[i - 1], node)) {
        return false;
      }
    }
    return true;
  }

  const LoopTree& tree_;
  const std::vector<NodeId> leaves_;
  const bool has_threads_;
  std::set<DimId> contiguous_dims_;  // the innermost dim of each value
  std::vector<bool> joins_outer_;    // by TreeRef
  std::map<NodeId, std::vector<TreeRef>> origins_;
};

}  // namespace

std::optional<JoinedTree> JoinSplits(const LoopTree& tree, std::uint32_t threads) {
  return Joiner(tree, threads).Make();
}

}  // namespace loopfleet::worker
