#include "common/looptree/interpreter/interpret.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/looptree/actions/walk.h"
#include "common/looptree/interpreter/arithmetic.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

std::vector<Action> WalkActions() {
  return {Up{},     Down{},   Down{},   SwapUp{}, SwapDown{}, SwapDown{}, Split{2},
          Split{3}, Split{4}, Split{7}, Merge{},  Unroll{},   Vectorize{}};
}

void ExpectWithin(const std::vector<Tensor>& actual, const Reference& reference) {
  ASSERT_EQ(actual.size(), reference.outputs.size());
  for (std::size_t o = 0; o < actual.size(); ++o) {
    ASSERT_EQ(actual[o].size(), reference.outputs[o].size());
    for (std::size_t i = 0; i < actual[o].size(); ++i) {
      const double tolerance = reference.tolerance[o].empty() ? 0 : reference.tolerance[o][i];
      ASSERT_FALSE(std::isnan(actual[o][i])) << "output " << o << " element " << i;
      ASSERT_LE(std::abs(actual[o][i] - reference.outputs[o][i]), tolerance)
          << "output " << o << " element " << i;
    }
  }
}

void ExpectMeansTheSame(const LoopTree& tree, SplitMix64& random) {
  SCOPED_TRACE(TreeText(tree, {}));
  const auto integers = IntegerInputs(tree.program(), random);
  const Reference exact = Evaluate(tree.program(), integers);
  for (const auto& tolerance : exact.tolerance) ASSERT_TRUE(tolerance.empty());
  ExpectWithin(Interpret(tree, integers), exact);
  const auto fractions = FractionInputs(tree.program(), random);
  ExpectWithin(Interpret(tree, fractions), Evaluate(tree.program(), fractions));
}

// Every tree that a walk reaches computes the program's result and has the same flop count. Its IR
// text parses back to the same tree with the same key.
TEST(Interpret, RandomWalksComputeWhatTheProgramMeans) {
  constexpr int kWalks = 40;
  constexpr int kSteps = 14;
  SplitMix64 random(2024);
  const auto actions = WalkActions();
  std::size_t trees = 0;
  for (const auto& [name, benchmark] : AllKinds()) {
    SCOPED_TRACE(name);
    const std::uint64_t flop_count = FlopCount(benchmark.start.program());
    for (int w = 0; w < kWalks; ++w) {
      AgentWalk walk(benchmark, RuleSet::kStructural);
      for (int s = 0; s < kSteps; ++s) {
        static_cast<void>(walk.Apply(actions[random.Below(actions.size())]));
      }
      ExpectMeansTheSame(walk.tree(), random);
      EXPECT_EQ(FlopCount(walk.tree().program()), flop_count);
      const auto parsed = ParseIr(IrTextOf(walk.tree()));
      ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
      EXPECT_EQ(IrTextOf(*parsed), IrTextOf(walk.tree()));
      EXPECT_EQ(TreeText(*parsed, {}), TreeText(walk.tree(), {}));
      EXPECT_EQ(KeyOf(*parsed), KeyOf(walk.tree()));
      ++trees;
      if (HasFatalFailure() || HasFailure()) return;
    }
  }
  EXPECT_EQ(trees, AllKinds().size() * kWalks);
}

TEST(Interpret, SimpleDialectWithTails) {
  SplitMix64 random(7);
  for (const char* length : {"1", "2", "13", "100", "127"}) {
    const Benchmark benchmark = Opened(std::string("benchmark://loop_tool-cpu-v0/") + length);
    SimpleWalk walk(benchmark);
    const std::vector<Action> actions = {ToggleMode{}, Up{}, Down{}, Up{}, Up{}, ToggleThread{}};
    for (int s = 0; s < 200; ++s) {
      ASSERT_TRUE(walk.Apply(actions[random.Below(actions.size())]).has_value());
      const auto tree = walk.Tree();
      ASSERT_TRUE(tree.has_value()) << tree.error().message;
      if (s % 20 == 0) ExpectMeansTheSame(*tree, random);
      if (HasFatalFailure()) return;
    }
  }
}

// m in 4 r 1 / m' in 2 / m'' in 4: a split inside a split, which one of the originals got wrong.
TEST(Interpret, TailOfATail) {
  SplitMix64 random(3);
  AgentWalk walk(Opened("benchmark://mm-v0/mm33_4_3"), RuleSet::kStructural);
  for (const Action& action : {Action{Split{8}}, Action{Down{}}, Action{Split{4}}}) {
    ASSERT_TRUE(walk.Apply(action).has_value());
  }
  const auto nodes = walk.tree().nodes();
  EXPECT_EQ(nodes[0].size, 4);
  EXPECT_EQ(nodes[0].tail, 1);
  EXPECT_EQ(nodes[1].size, 2);
  EXPECT_EQ(nodes[2].size, 4);
  ExpectMeansTheSame(walk.tree(), random);
}

// A tail that is cut short inside an outer tail: 11 = 1 * 8 + 3, where 8 = 1 * 5 + 3 as well.
TEST(Interpret, InnerTailInsideOuterTail) {
  const auto tree = ParseIr(
      "v:m\nn:2::0,:::0:::::\nn:15:0,:0,:::0:0;1;3,0;1;3,0;5;0,::,,,::\n"
      "n:1:1,:0,:::0:0;11;0,::,::\ni:0,\no:2,\n");
  ASSERT_TRUE(tree.has_value()) << tree.error().message;
  SplitMix64 random(4);
  ExpectMeansTheSame(*tree, random);
}

TEST(Interpret, ForeignLoopsAreThere) {
  for (const auto& [name, benchmark] : AllKinds()) {
    if (name != "foreign_reduction") continue;
    const LoopTree& tree = benchmark.start;
    const TreeNode& leaf = tree.nodes()[*tree.LeafOf(3)];
    EXPECT_GT(leaf.depth, tree.LoopsOf(3).size()) << TreeText(tree, {});
  }
}

// As in compiled kernels (docs/LOWERING.md).
TEST(Interpret, TheSecondOperandWinsWhereOneIsNaN) {
  const double nan = std::nan("");
  for (const Op op : {Op::kMin, Op::kMax}) {
    EXPECT_EQ(Binary(op, nan, 1.0), 1.0);
    EXPECT_TRUE(std::isnan(Binary(op, 1.0, nan)));
  }
}

}  // namespace
}  // namespace loopfleet::looptree
