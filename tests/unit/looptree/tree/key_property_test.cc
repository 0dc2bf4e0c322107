// Keys are equal exactly if trees are: same program except for names, same loops, same annotations.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "common/looptree/tree/key.h"
#include "tests/unit/looptree/random_walk.h"

namespace loopfleet::looptree {
namespace {

// Equality of trees by its definition, without the canonical form: traverses both side by side and
// pairs up their dimensions.
class Comparison {
 public:
  Comparison(const LoopTree& a, const LoopTree& b)
      : a_(a), b_(b), to_b_(a.program().dims.size()), to_a_(b.program().dims.size()) {}

  bool Same() {
    const Program& a = a_.program();
    const Program& b = b_.program();
    if (a.nodes.size() != b.nodes.size() || a.inputs != b.inputs || a.outputs != b.outputs)
      return false;
    for (NodeId id = 0; id < a.nodes.size(); ++id) {
      if (!SameNode(id)) return false;
    }
    if (a_.nodes().size() != b_.nodes().size()) return false;
    for (TreeRef ref = 0; ref < a_.nodes().size(); ++ref) {
      if (!SameTreeNode(a_.nodes()[ref], b_.nodes()[ref])) return false;
    }
    return true;
  }

 private:
  bool Pair(DimId a, DimId b) {
    if (a_.program().dims[a].size != b_.program().dims[b].size) return false;
    if (!to_b_[a] && !to_a_[b]) {
      to_b_[a] = b;
      to_a_[b] = a;
    }
    return to_b_[a] == b && to_a_[b] == a;
  }

  bool SameNode(NodeId id) {
    const Node& a = a_.program().nodes[id];
    const Node& b = b_.program().nodes[id];
    if (a.op != b.op || a.inputs != b.inputs || a.constant != b.constant ||
        a.dims.size() != b.dims.size() || a.view.size() != b.view.size() || a.outside != b.outside)
      return false;
    for (std::size_t i = 0; i < a.dims.size(); ++i) {
      if (!Pair(a.dims[i], b.dims[i])) return false;
    }
    return std::all_of(a.view.begin(), a.view.end(), [&](const ViewIndex& index) {
      return std::any_of(b.view.begin(), b.view.end(), [&](const ViewIndex& other) {
        return Pair(index.input_dim, other.input_dim) && SameIndex(index, other);
      });
    });
  }

  bool SameIndex(const ViewIndex& a, const ViewIndex& b) const {
    const auto coefficient = [](const ViewIndex& index, DimId dim) {
      for (const AffineTerm& term : index.terms) {
        if (term.dim == dim) return term.coefficient;
      }
      return std::int64_t{0};
    };
    if (a.constant != b.constant || a.divisor != b.divisor || a.guarded != b.guarded) return false;
    for (DimId dim = 0; dim < to_b_.size(); ++dim) {
      if (to_b_[dim] && coefficient(a, dim) != coefficient(b, *to_b_[dim])) return false;
    }
    return true;
  }

  bool SameTreeNode(const TreeNode& a, const TreeNode& b) {
    if (a.kind != b.kind || a.depth != b.depth) return false;
    if (a.kind == TreeNode::Kind::kOperation) return a.node == b.node;
    return Pair(a.dim, b.dim) && a.size == b.size && a.tail == b.tail &&
           a.annotation == b.annotation;
  }

  const LoopTree& a_;
  const LoopTree& b_;
  std::vector<std::optional<DimId>> to_b_;
  std::vector<std::optional<DimId>> to_a_;
};

bool Same(const LoopTree& a, const LoopTree& b) { return Comparison(a, b).Same(); }

// The same tree with its dimensions renamed and declared in another order.
LoopTree Renamed(const LoopTree& tree, SplitMix64& random) {
  const Program& from = tree.program();
  std::vector<DimId> to(from.dims.size());
  for (DimId dim = 0; dim < to.size(); ++dim) to[dim] = dim;
  for (std::size_t i = to.size(); i > 1; --i) std::swap(to[i - 1], to[random.Below(i)]);
  Program program = from;
  for (DimId dim = 0; dim < to.size(); ++dim) {
    program.dims[to[dim]] = {"x" + std::to_string(random.Below(1000)) + "_" + std::to_string(dim),
                             from.dims[dim].size};
  }
  for (Node& node : program.nodes) {
    for (DimId& dim : node.dims) dim = to[dim];
    for (ViewIndex& index : node.view) {
      index.input_dim = to[index.input_dim];
      for (AffineTerm& term : index.terms) term.dim = to[term.dim];
      std::reverse(index.terms.begin(), index.terms.end());
    }
    std::reverse(node.view.begin(), node.view.end());
  }
  Schedule schedule = tree.schedule();
  for (NodeSchedule& node : schedule) {
    for (LoopSpec& loop : node.loops) loop.dim = to[loop.dim];
  }
  auto renamed =
      LoopTree::Build(std::make_shared<const Program>(std::move(program)), std::move(schedule));
  LF_CHECK(renamed.has_value(), "{}", renamed.error().message);
  return *std::move(renamed);
}

std::vector<LoopTree> Pool(SplitMix64& random) {
  std::vector<LoopTree> pool;
  for (const auto& [name, benchmark] : KindsToWalk()) {
    for (int w = 0; w < 24; ++w) {  // short walks, so that several end in the same tree
      pool.push_back(Walked(benchmark, RuleSet::kStructural, w % 8, random).tree());
    }
    pool.push_back(Renamed(pool.back(), random));
  }
  for (const char* uri : {"benchmark://loop_tool-cpu-v0/12", "benchmark://loop_tool-cuda-v0/12",
                          "benchmark://mm-v0/mm8_16_4"}) {
    const Benchmark benchmark = Opened(uri);
    for (int w = 0; w < 16; ++w) {
      pool.push_back(benchmark.dialect == Dialect::kSimple
                         ? WalkedSimple(benchmark, w, random)
                         : Walked(benchmark, RuleSet::kLoopNest, w % 6, random).tree());
    }
  }
  return pool;
}

TEST(KeyProperty, EqualExactlyWhereTreesAre) {
  SplitMix64 random(61);
  const std::vector<LoopTree> pool = Pool(random);
  std::vector<TreeKey> keys;
  std::vector<std::string> forms;
  for (const LoopTree& tree : pool) {
    keys.push_back(KeyOf(tree));
    forms.push_back(CanonicalForm(tree));
  }
  std::size_t equal = 0;
  std::size_t different = 0;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool same = Same(pool[i], pool[j]);
      ASSERT_EQ(keys[i] == keys[j], same) << TreeText(pool[i], {}) << "and\n"
                                          << TreeText(pool[j], {}) << forms[i] << forms[j];
      ASSERT_EQ(forms[i] == forms[j], same);
      ++(same ? equal : different);
    }
  }
  EXPECT_GT(equal, 300u);  // both cases occur
  EXPECT_GT(different, 10'000u);
}

TEST(KeyProperty, NamesAndDeclarationOrderPlayNoPart) {
  SplitMix64 random(62);
  for (const auto& [name, benchmark] : KindsToWalk()) {
    SCOPED_TRACE(name);
    for (int w = 0; w < 10; ++w) {
      const LoopTree tree = Walked(benchmark, RuleSet::kStructural, 2 * w, random).tree();
      EXPECT_EQ(KeyOf(Renamed(tree, random)), KeyOf(tree)) << TreeText(tree, {});
    }
  }
}

TEST(KeyProperty, TheCursorPlaysNoPart) {
  SplitMix64 random(63);
  for (const auto& [name, benchmark] : KindsToWalk()) {
    SCOPED_TRACE(name);
    AgentWalk walk = Walked(benchmark, RuleSet::kStructural, 10, random);
    const TreeKey key = KeyOf(walk.tree());
    std::size_t moves = 0;
    for (const Action& move : {Action{Down{}}, Action{Down{}}, Action{Up{}}, Action{Down{}}}) {
      moves += walk.Apply(move).has_value();
      EXPECT_EQ(KeyOf(walk.tree()), key);
    }
    EXPECT_GT(moves, 0u);
  }
}

// A change of one loop's annotation, size or order changes the tree, and so its key.
TEST(KeyProperty, EveryChangeOfTheTreeChangesTheKey) {
  SplitMix64 random(64);
  for (const auto& [name, benchmark] : KindsToWalk()) {
    SCOPED_TRACE(name);
    for (int w = 0; w < 10; ++w) {
      AgentWalk walk = Walked(benchmark, RuleSet::kStructural, w, random);
      for (const Action& action : AgentActions()) {
        AgentWalk changed = walk;
        if (!changed.Apply(action).has_value()) continue;
        EXPECT_EQ(KeyOf(changed.tree()) == KeyOf(walk.tree()), Same(changed.tree(), walk.tree()))
            << ActionName(action);
      }
    }
  }
}

}  // namespace
}  // namespace loopfleet::looptree
