// Properties of every walk over every kind of program under every rule set.

#include <gtest/gtest.h>

#include "common/looptree/actions/walk.h"
#include "common/looptree/tree/key.h"
#include "tests/unit/looptree/random_walk.h"

namespace loopfleet::looptree {
namespace {

// Points of the operation that its loops cover, tails included, folded from the innermost out.
std::int64_t PointsByLoops(const LoopTree& tree, NodeId id) {
  std::vector<std::int64_t> covered(tree.program().dims.size(), 1);
  const auto loops = tree.LoopsOf(id);
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    const TreeNode& node = tree.nodes()[*loop];
    covered[node.dim] = covered[node.dim] * node.size + node.tail;
  }
  std::int64_t points = 1;
  for (const std::int64_t elements : covered) points *= elements;
  return points;
}

std::int64_t PointsByProgram(const Program& program, NodeId id) {
  std::int64_t points = program.ElementCount(id);
  for (const DimId dim : program.ReducedDims(id)) points *= program.dims[dim].size;
  return points;
}

// Each operation with a leaf still has one, inside its own loops, and they cover every point once.
void ExpectWhole(const LoopTree& tree, const LoopTree& start) {
  for (NodeId id = 0; id < tree.program().nodes.size(); ++id) {
    ASSERT_EQ(tree.LeafOf(id).has_value(), start.LeafOf(id).has_value()) << "node " << id;
    if (!tree.LeafOf(id)) continue;
    ASSERT_EQ(PointsByLoops(tree, id), PointsByProgram(tree.program(), id))
        << "node " << id << " of\n"
        << TreeText(tree, {});
    for (const TreeRef loop : tree.LoopsOf(id)) {
      ASSERT_TRUE(loop < *tree.LeafOf(id) && *tree.LeafOf(id) < tree.nodes()[loop].end);
    }
  }
}

// Expects that an applied action leaves a whole tree with the cursor in it, that a rejected one
// changes nothing, and that IsLegal predicts which. Returns the number of applied actions.
std::size_t Walk(AgentWalk walk, const LoopTree& start, const std::vector<Action>& actions,
                 SplitMix64& random) {
  constexpr int kSteps = 80;
  std::size_t applied = 0;
  for (int s = 0; s < kSteps; ++s) {
    const Action action = Drawn(actions, random);
    const auto before = Seen(walk);
    const std::size_t history = walk.history().size();
    const bool legal = walk.IsLegal(action);
    EXPECT_EQ(Seen(walk), before) << "IsLegal changed the walk";
    EXPECT_EQ(walk.Apply(action).has_value(), legal) << ActionName(action);
    EXPECT_EQ(walk.history().size(), history + (legal ? 1 : 0));
    if (!legal) {
      EXPECT_EQ(Seen(walk), before) << ActionName(action);
    }
    EXPECT_LT(walk.cursor(), walk.tree().nodes().size()) << ActionName(action);
    if (testing::Test::HasFailure()) return applied;
    ExpectWhole(walk.tree(), start);
    applied += legal;
  }
  return applied;
}

TEST(WalkProperty, ElementsAreNeitherLostNorGained) {
  constexpr int kWalks = 20;
  // Annotations alone make nests fall apart and fuse most often.
  const std::vector<Action> annotating = {Down{},   Down{},      Down{},     Up{},    Unroll{},
                                          Unroll{}, Vectorize{}, SwapDown{}, Split{2}};
  SplitMix64 random(31);
  std::size_t applied = 0;
  for (const auto& [name, benchmark] : KindsToWalk()) {
    for (const RuleSet rules : kAllRuleSets) {
      SCOPED_TRACE(testing::Message() << name << ", rules " << NameOf(rules));
      for (int w = 0; w < kWalks; ++w) {
        applied += Walk(AgentWalk(benchmark, rules), benchmark.start,
                        w % 2 == 0 ? AgentActions() : annotating, random);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(applied, 10'000u);  // not every action is rejected
}

// Nests that fuse leave a shorter tree. Only long walks fuse the last nest with the cursor inside
// it.
TEST(WalkProperty, TheCursorStaysOnALoop) {
  constexpr int kWalks = 300;
  constexpr int kSteps = 120;
  const std::vector<Action> actions = {Down{},   Down{},      Up{},       Unroll{}, Unroll{},
                                       Split{2}, Vectorize{}, SwapDown{}, Merge{}};
  SplitMix64 random(35);
  for (const auto& [name, benchmark] : KindsToWalk()) {
    for (int w = 0; w < kWalks; ++w) {
      AgentWalk walk(benchmark, RuleSet::kStructural);
      for (int s = 0; s < kSteps; ++s) {
        const Action& action = Drawn(actions, random);
        if (!walk.Apply(action).has_value()) continue;
        ASSERT_LT(walk.cursor(), walk.tree().nodes().size()) << name << ": " << ActionName(action);
        ASSERT_EQ(walk.tree().nodes()[walk.cursor()].kind, TreeNode::Kind::kLoop)
            << name << ": " << ActionName(action);
      }
    }
  }
}

TEST(WalkProperty, SimpleWalksKeepTheirElements) {
  SplitMix64 random(32);
  for (const char* length : {"1", "2", "3", "97", "1024", "8388607"}) {
    const Benchmark benchmark = Opened(std::string("benchmark://loop_tool-cpu-v0/") + length);
    SimpleWalk walk(benchmark);
    for (int s = 0; s < 2000; ++s) {
      ASSERT_TRUE(walk.Apply(Drawn(SimpleActions(), random)).has_value());
      if (s % 10 != 0) continue;
      const auto tree = walk.Tree();
      ASSERT_TRUE(tree.has_value()) << tree.error().message;
      ASSERT_NO_FATAL_FAILURE(ExpectWhole(*tree, benchmark.start)) << length;
    }
  }
}

// Repeated undo passes through every state of the walk, back to the first.
TEST(WalkProperty, UndoUndoes) {
  SplitMix64 random(33);
  for (const auto& [name, benchmark] : KindsToWalk()) {
    for (const RuleSet rules : kAllRuleSets) {
      SCOPED_TRACE(testing::Message() << name << ", rules " << NameOf(rules));
      AgentWalk walk(benchmark, rules);
      std::vector<std::pair<std::string, TreeRef>> states = {Seen(walk)};
      for (int s = 0; s < 80; ++s) {
        if (random.Below(5) == 0 && states.size() > 1) {
          ASSERT_TRUE(walk.Apply(Undo{}).has_value());
          states.pop_back();
        } else if (walk.Apply(Drawn(AgentActions(), random)).has_value()) {
          states.push_back(Seen(walk));
        }
        ASSERT_EQ(Seen(walk), states.back());
        ASSERT_EQ(walk.history().size() + 1, states.size());
      }
      while (states.size() > 1) {
        ASSERT_TRUE(walk.IsLegal(Undo{}));
        ASSERT_TRUE(walk.Apply(Undo{}).has_value());
        states.pop_back();
        ASSERT_EQ(Seen(walk), states.back());
      }
      EXPECT_FALSE(walk.IsLegal(Undo{}));
      EXPECT_FALSE(walk.Apply(Undo{}).has_value());
    }
  }
}

// Replaying a walk's actions on its benchmark always gives the same tree; a replay does not affect
// the next one.
TEST(WalkProperty, ReplayingTwiceIsReplayingOnce) {
  SplitMix64 random(34);
  for (const auto& [name, benchmark] : KindsToWalk()) {
    const Source source = IrText{IrTextOf(benchmark.start)};
    for (const RuleSet rules : kAllRuleSets) {
      for (int w = 0; w < 30; ++w) {
        SCOPED_TRACE(testing::Message() << name << ", rules " << NameOf(rules));
        std::vector<Action> drawn;
        for (int s = 0; s < 25; ++s) drawn.push_back(Drawn(AgentActions(), random));
        const ReplayOptions skip{.rules = rules, .on_illegal = OnIllegal::kSkip};
        const auto once = Replay(source, drawn, skip);
        const auto twice = Replay(source, drawn, skip);
        ASSERT_TRUE(once.has_value() && twice.has_value());
        EXPECT_EQ(IrTextOf(once->tree), IrTextOf(twice->tree));
        EXPECT_EQ(KeyOf(once->tree), KeyOf(twice->tree));

        // Only the legal actions matter: replaying them alone succeeds without skipping.
        AgentWalk walk(benchmark, rules);
        for (const Action& action : drawn) static_cast<void>(walk.Apply(action));
        const std::vector<Action> legal(walk.history().begin(), walk.history().end());
        const auto strict = Replay(source, legal, {.rules = rules});
        ASSERT_TRUE(strict.has_value()) << strict.error().message;
        EXPECT_EQ(TreeText(strict->tree, {}), TreeText(once->tree, {}));
        EXPECT_EQ(KeyOf(strict->tree), KeyOf(walk.tree()));
      }
    }
  }
}

}  // namespace
}  // namespace loopfleet::looptree
