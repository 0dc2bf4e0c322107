#include "worker/lowering/parallel_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "worker/lowering/access_map.h"

namespace loopfleet::worker {
namespace {

using looptree::Annotation;
using looptree::DimId;
using looptree::LoopTree;
using looptree::NodeId;
using looptree::Op;
using looptree::TreeNode;
using looptree::TreeRef;

std::vector<OperandSource> OperandsOf(const LoopTree& tree, NodeId id) {
  const looptree::Node& node = tree.program().nodes[id];
  std::vector<OperandSource> sources;
  if (node.op == Op::kView) {
    sources.push_back(ResolveViewInput(tree, id));
  } else if (node.op != Op::kRead && node.op != Op::kConstant) {
    for (NodeId input : node.inputs) sources.push_back(ResolveOperand(tree, input));
  }
  return sources;
}

class Finder {
 public:
  explicit Finder(const LoopTree& tree) : tree_(tree) {}

  ParallelLoops Find(ParallelRule rule) {
    for (TreeRef root : tree_.Children(std::nullopt)) {
      const std::size_t before = found_.groups.size();
      FindIn(root);
      if (rule == ParallelRule::kAnnotated || found_.groups.size() > before) continue;
      every_ = true;
      FindIn(root);
      every_ = false;
    }
    return std::move(found_);
  }

 private:
  void FindIn(TreeRef root) {
    const TreeRef end = tree_.nodes()[root].end;
    for (TreeRef ref = root; ref < end; ++ref) {
      if (!HasWaiters(ref)) continue;
      if (const auto problem = Problem(ref)) {
        Refuse(ref, *problem);
        continue;
      }
      ref = AddGroup(ref) - 1;
    }
  }

  bool IsAnnotated(TreeRef ref) const {
    return tree_.IsLoop(ref) && tree_.nodes()[ref].annotation == Annotation::kThread;
  }
  bool HasWaiters(TreeRef ref) const { return every_ ? tree_.IsLoop(ref) : IsAnnotated(ref); }
  // Keeps the first reason.
  void Refuse(TreeRef ref, std::string why) {
    if (IsAnnotated(ref)) found_.refused.try_emplace(ref, std::move(why));
  }

  // Returns the end of the group's subtree: every loop in it has been decided.
  TreeRef AddGroup(TreeRef outermost) {
    std::vector<TreeRef> group = {outermost};
    for (std::vector<TreeRef> inside = tree_.Children(outermost);
         inside.size() == 1 && HasWaiters(inside[0]) && !Problem(inside[0]);
         inside = tree_.Children(inside[0])) {
      group.push_back(inside[0]);
    }
    const TreeRef end = tree_.nodes()[outermost].end;
    for (TreeRef ref = group.back() + 1; ref < end; ++ref) {
      if (!IsAnnotated(ref)) continue;
      Refuse(ref,
             Problem(ref).value_or(fmt::format("inside L{}, which is split already", outermost)));
    }
    found_.groups.push_back(std::move(group));
    return end;
  }

  std::optional<std::string> Problem(TreeRef loop) const {
    const TreeNode& node = tree_.nodes()[loop];
    if (!every_ && node.size + (node.tail > 0 ? 1 : 0) < 2) return "it has one iteration";
    for (TreeRef ref = loop + 1; ref < node.end; ++ref) {
      if (tree_.nodes()[ref].kind != TreeNode::Kind::kOperation) continue;
      if (auto problem = ProblemOf(tree_.nodes()[ref].node, loop)) return problem;
    }
    return std::nullopt;
  }

  std::optional<std::string> ProblemOf(NodeId id, TreeRef loop) const {
    const DimId dim = tree_.nodes()[loop].dim;
    if (std::ranges::find(tree_.LoopsOf(id), loop) == tree_.LoopsOf(id).end()) {
      return fmt::format("%{} would be repeated by it", id);
    }
    const std::vector<DimId> reduced = tree_.program().ReducedDims(id);
    if (std::ranges::find(reduced, dim) != reduced.end()) {
      return fmt::format("%{} reduces over it", id);
    }
    for (const OperandSource& operand : OperandsOf(tree_, id)) {
      const auto* map = std::get_if<AccessMap>(&operand);
      if (map != nullptr && ReadsOtherIterations(*map, loop)) {
        return fmt::format("%{} reads what other iterations compute", id);
      }
    }
    return std::nullopt;
  }

  // A value that is computed in the loop and outlives one of its iterations is shared: an iteration
  // may read only the part that it computes itself.
  bool ReadsOtherIterations(const AccessMap& map, TreeRef loop) const {
    const TreeNode& node = tree_.nodes()[loop];
    const auto leaf = tree_.LeafOf(map.stored);
    if (!leaf.has_value() || *leaf < loop || *leaf >= node.end) return false;
    const auto scope = tree_.ScopeOf(map.stored);
    const bool lives_inside = scope.has_value() && *scope >= loop && *scope < node.end;
    if (lives_inside) return false;
    const std::vector<DimId>& dims = tree_.program().nodes[map.stored].dims;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == node.dim) return !map.indices[i].IsIdentityOf(node.dim);
    }
    return true;
  }

  const LoopTree& tree_;
  bool every_ = false;  // every loop is to be split, annotated or not
  ParallelLoops found_;
};

}  // namespace

ParallelLoops FindParallelLoops(const LoopTree& tree, ParallelRule rule) {
  return Finder(tree).Find(rule);
}

}  // namespace loopfleet::worker
