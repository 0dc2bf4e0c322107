#include <gtest/gtest.h>

#include "common/looptree/actions/walk.h"
#include "common/looptree/text/text.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

constexpr char kMm[] = "benchmark://mm-v0/mm64_64_64";

AgentWalk Walked(const std::string& uri, const std::string& actions,
                 RuleSet rules = RuleSet::kStructural) {
  AgentWalk walk(Opened(uri), rules);
  const auto parsed = ParseActionList(actions);
  for (const Action& action : *parsed) {
    const auto applied = walk.Apply(action);
    EXPECT_TRUE(applied.has_value()) << ActionName(action) << ": " << applied.error().message;
  }
  return walk;
}

TEST(AgentWalk, StructuralMovesReachEveryLoop) {
  AgentWalk walk = Walked(kMm, "down,down");
  EXPECT_EQ(walk.cursor(), 2u);
  ASSERT_TRUE(walk.Apply(Down{}).has_value());  // over the two operations, to the write's loop
  EXPECT_EQ(walk.cursor(), 5u);
  EXPECT_FALSE(walk.IsLegal(Down{}));
  ASSERT_TRUE(walk.Apply(Up{}).has_value());
  EXPECT_EQ(walk.cursor(), 2u);
}

TEST(AgentWalk, OriginalMovesStopAtOperations) {
  AgentWalk walk = Walked(kMm, "down,down", RuleSet::kLoopNest);
  EXPECT_FALSE(walk.IsLegal(Down{}));
  EXPECT_TRUE(walk.IsLegal(Up{}));
  EXPECT_FALSE(AgentWalk(Opened(kMm), RuleSet::kLoopNest).IsLegal(Up{}));
  EXPECT_FALSE(AgentWalk(Opened(kMm), RuleSet::kLoopNest, 5).IsLegal(Up{}));
}

TEST(AgentWalk, SwapOfOneDimensionOnlyMovesTheCursor) {
  const AgentWalk before = Walked(kMm, "split_8");
  const AgentWalk after = Walked(kMm, "split_8,swap_down");
  EXPECT_EQ(TreeText(before.tree(), {}), TreeText(after.tree(), {}));
  EXPECT_EQ(after.cursor(), 1u);
}

TEST(AgentWalk, SwapLeavesOperationsThatLackALoopAlone) {
  const AgentWalk walk = Walked(kMm, "swap_down");
  EXPECT_EQ(TreeText(walk.tree(), {.cursor = walk.cursor()}),
            "for k in 64 : L0\n"
            " for m in 64 : L1  <<<<<< cursor (line 1 )\n"
            "  for n in 64 : L2\n"
            "   %2[m, k, n] <- multiply(%0, %1)\n"
            "   %3[m, n] <- add(%2)\n"
            "for m in 64 : L5\n"
            " for n in 64 : L6\n"
            "  %4[m, n] <- write(%3)\n");
}

TEST(AgentWalk, AnIllegalActionChangesNothing) {
  AgentWalk walk(Opened(kMm), RuleSet::kStructural);
  const std::string before = TreeText(walk.tree(), {});
  for (const Action& action : {Action{Up{}}, Action{SwapUp{}}, Action{Split{65}}, Action{Undo{}},
                               Action{ToggleMode{}}, Action{Split{INT64_MAX}}}) {
    const auto applied = walk.Apply(action);
    ASSERT_FALSE(applied.has_value()) << ActionName(action);
    EXPECT_EQ(applied.error().code, RejectionCode::kInvalidAction);
    EXPECT_FALSE(walk.IsLegal(action));
    EXPECT_EQ(TreeText(walk.tree(), {}), before);
    EXPECT_EQ(walk.cursor(), 0u);
    EXPECT_TRUE(walk.history().empty());
  }
}

TEST(AgentWalk, LoopNestRules) {
  AgentWalk odd(Opened("benchmark://mm-v0/mm64_36_64"), RuleSet::kLoopNest);
  for (const Action& action : {Action{Up{}}, Action{Down{}}, Action{Dummy{}}, Action{Split{2}}}) {
    EXPECT_FALSE(odd.IsLegal(action)) << ActionName(action);
  }
  AgentWalk deep(Opened("benchmark://mm-v0/mm256_64_64"), RuleSet::kLoopNest);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(deep.Apply(Split{2}).has_value());  // 10 loops
  EXPECT_FALSE(deep.IsLegal(Split{2}));
  AgentWalk older(Opened("benchmark://mm-v0/mm256_64_64"), RuleSet::kLoopNest58);
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(older.Apply(Split{2}).has_value());
}

TEST(AgentWalk, MergeWithoutAnythingToMergeIsLegal) {
  const AgentWalk walk = Walked(kMm, "merge");
  EXPECT_EQ(TreeText(walk.tree(), {}), TreeText(Opened(kMm).start, {}));
}

TEST(AgentWalk, MergeAllStartsUndoAnew) {
  AgentWalk walk(Opened(kMm), RuleSet::kLoopNest);
  ASSERT_TRUE(walk.MergeAll().has_value());
  ASSERT_TRUE(walk.Apply(Split{4}).has_value());
  ASSERT_TRUE(walk.Apply(Undo{}).has_value());
  EXPECT_FALSE(walk.IsLegal(Undo{}));
}

TEST(AgentWalk, MergeAllGoesPastAnOperationWithoutLoops) {
  const Benchmark benchmark =
      WholeLoops({.dims = {{"m", 12}},
                  .nodes = {{.op = Op::kRead, .dims = {}},
                            {.op = Op::kNegate, .inputs = {0}, .dims = {}},
                            {.op = Op::kWrite, .inputs = {1}, .dims = {}},
                            {.op = Op::kRead, .dims = {0}},
                            {.op = Op::kAbs, .inputs = {3}, .dims = {0}},
                            {.op = Op::kWrite, .inputs = {4}, .dims = {0}}}});
  AgentWalk walk(benchmark, RuleSet::kStructural);
  ASSERT_NE(walk.tree().nodes()[walk.cursor()].kind, TreeNode::Kind::kLoop);
  const std::string merged = TreeText(walk.tree(), {});
  ASSERT_TRUE(walk.Apply(Down{}).has_value());
  ASSERT_TRUE(walk.Apply(Split{4}).has_value());
  ASSERT_NE(TreeText(walk.tree(), {}), merged);
  const auto done = walk.Apply(MergeAllLoops{});
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(TreeText(walk.tree(), {}), merged);
}

TEST(AgentWalk, VectorizeToggles) {
  EXPECT_EQ(Walked(kMm, "down,down,vectorize").tree().nodes()[2].annotation,
            Annotation::kVectorize);
  EXPECT_EQ(Walked(kMm, "down,down,vectorize,vectorize").tree().nodes()[2].annotation,
            Annotation::kNone);
}

// Under the original's rules, unroll applies to the leading loops, wherever the cursor is.
TEST(AgentWalk, UnrollFromAnotherNestByTheOriginalsRules) {
  const Benchmark benchmark = Opened("benchmark://mm-v0/mm64_64_64");
  AgentWalk walk(benchmark, RuleSet::kLoopNest, 1);
  ASSERT_TRUE(walk.Apply(Unroll{}).has_value());
  EXPECT_EQ(walk.tree().nodes()[2].annotation, Annotation::kUnroll);
  AgentWalk elsewhere(Benchmark{.start = walk.tree()}, RuleSet::kLoopNest, 5);
  ASSERT_TRUE(elsewhere.Apply(Unroll{}).has_value());
  EXPECT_EQ(TreeText(elsewhere.tree(), {}), TreeText(benchmark.start, {}));
}

// The same as merging before the first action, except that it can be undone.
TEST(AgentWalk, MergeAllIsAnAction) {
  const Benchmark benchmark = Opened("benchmark://mm-v0/mm64_64_64");
  AgentWalk walk(benchmark, RuleSet::kStructural);
  const auto actions = ParseActionList("split_8,down,down,down,split_16,merge_all");
  ASSERT_TRUE(actions.has_value());
  for (const Action& action : *actions) ASSERT_TRUE(walk.Apply(action).has_value());
  EXPECT_EQ(TreeText(walk.tree(), {}), TreeText(benchmark.start, {}));
  EXPECT_EQ(walk.cursor(), 0u);
  ASSERT_TRUE(walk.Apply(Undo{}).has_value());
  EXPECT_EQ(walk.history().size(), 5u);
  EXPECT_NE(TreeText(walk.tree(), {}), TreeText(benchmark.start, {}));
}

// Two nests that differ only in an annotation fuse when it is set. That renumbers the loops further
// down the path of unroll.
TEST(AgentWalk, UnrollWhereNestsFuse) {
  const auto tree = ParseIr(
      "v:m\nv:n\nv:k\nn:2::0,1,2,:::0:::::\n"
      "n:14:0,:0,1,2,:::0:0;2;0,1;4;0,2;3;0,::,unroll,unroll,::\n"
      "n:15:1,:0,1,2,:::0:0;2;0,1;4;0,2;3;0,::,,,::\n"
      "n:1:2,:0,1,2,:::0:0;2;0,1;4;0,2;3;0,::,,,::\ni:0,\no:3,\n");
  ASSERT_TRUE(tree.has_value()) << tree.error().message;
  AgentWalk walk(Benchmark{.start = *tree}, RuleSet::kStructural, 4);
  ASSERT_TRUE(walk.Apply(Unroll{}).has_value());
  EXPECT_EQ(TreeText(walk.tree(), {}),
            "for m in 2 : L0\n"
            " for n in 4 : L1 unroll\n"
            "  for k in 3 : L2 unroll\n"
            "   %1[m, n, k] <- abs(%0)\n"
            "   %2[m, n, k] <- negate(%1)\n"
            "   %3[m, n, k] <- write(%2)\n");
}

// Removing the annotations from the write's nest fuses it with the nest above, which ends before
// the cursor's old number. The cursor moves to the last loop.
TEST(AgentWalk, TheCursorStaysOnATreeThatBecameShorter) {
  const auto tree = ParseIr(
      "v:m\nv:k\nv:n\nn:2::0,1,:::0:::::\nn:2::1,2,:::0:::::\n"
      "n:7:0,1,:0,1,2,:::0:0;8;0,2;1;0,2;3;0,1;5;0,::,,,,::\n"
      "n:5:2,:0,2,:::0:0;8;0,2;1;0,2;3;0,1;5;0,::,,,,::\n"
      "n:1:3,:0,2,:::0:0;8;0,2;1;0,2;3;0,::,unroll,unroll,::\ni:0,1,\no:4,\n");
  ASSERT_TRUE(tree.has_value()) << tree.error().message;
  ASSERT_EQ(tree->nodes().size(), 9u);
  AgentWalk walk(Benchmark{.start = *tree}, RuleSet::kStructural, 7);
  ASSERT_TRUE(walk.Apply(Unroll{}).has_value());
  EXPECT_EQ(walk.tree().nodes().size(), 7u);
  EXPECT_EQ(walk.cursor(), 3u);
  EXPECT_EQ(walk.tree().nodes()[walk.cursor()].kind, TreeNode::Kind::kLoop);
  EXPECT_TRUE(walk.Apply(Split{5}).has_value());
}

// With a hundred operations twenty loops deep, a walk does not keep all of its 619 earlier states
// in memory. Undo still reaches them all.
TEST(AgentWalk, UndoReachesFurtherThanMemory) {
  Program program{.dims = {{"m", 1 << 20}}, .nodes = {{.op = Op::kRead, .dims = {0}}}};
  for (NodeId id = 0; id < 100; ++id) {
    program.nodes.push_back({.op = Op::kAbs, .inputs = {id}, .dims = {0}});
  }
  program.nodes.push_back({.op = Op::kWrite, .inputs = {100}, .dims = {0}});
  AgentWalk walk(WholeLoops(std::move(program)), RuleSet::kStructural);
  std::vector<std::string> states;
  const auto apply = [&](const Action& action) {
    states.push_back(TreeText(walk.tree(), {.cursor = walk.cursor()}));
    const auto applied = walk.Apply(action);
    ASSERT_TRUE(applied.has_value()) << applied.error().message;
  };
  for (int split = 0; split < 19; ++split) ASSERT_NO_FATAL_FAILURE(apply(Split{2}));
  for (int step = 0; step < 600; ++step) {
    ASSERT_NO_FATAL_FAILURE(apply(step % 3 == 0   ? Action{Down{}}
                                  : step % 3 == 1 ? Action{Vectorize{}}
                                                  : Action{Up{}}));
  }
  while (!states.empty()) {
    ASSERT_TRUE(walk.Apply(Undo{}).has_value());
    ASSERT_EQ(TreeText(walk.tree(), {.cursor = walk.cursor()}), states.back());
    states.pop_back();
  }
  EXPECT_FALSE(walk.Apply(Undo{}).has_value());
}

TEST(AgentWalk, SplitStormsEndAtTheLimits) {
  AgentWalk walk(Opened("benchmark://mm-v0/mm8192_64_64"), RuleSet::kStructural);
  int splits = 0;
  std::optional<Rejection> end;
  while (!end && splits < 100) {
    auto applied = walk.Apply(Split{2});
    if (applied) {
      ++splits;
    } else {
      end = applied.error();
    }
  }
  EXPECT_EQ(splits, 13);  // 2^13: then the loop has size 1
  EXPECT_EQ(end->code, RejectionCode::kInvalidAction);
}

// Regression: annotating the loops one by one, with a rebuild in between, let nests fuse on the
// way, so that loop numbers referred to operations.
TEST(AgentWalk, UnrollsWhereNestsComeToFuse) {
  const IrText ir{
      "v:k\nv:m\nv:n\nn:2::0,1,2,:::0:::::\nn:2::0,2,:::0:::::\nn:2::2,:::0:::::\n"
      "n:15:0,:0,1,2,:::0:1;2;0,2;1;0,2;1;0,0;4;0,::,vectorize,,vectorize,::\n"
      "n:1:3,:0,1,2,:::0:1;2;0,2;1;0,2;1;0,0;4;0,:3,:,vectorize,,vectorize,::\n"
      "n:10:1,:2,:::0:0;2;0,0;2;0,2;1;0,::cpu_parallel,,,::\nn:1:5,:2,:::0:2;1;0,::,::\n"
      "n:14:2,:2,:::0:2;1;0,2;1;0,::cpu_parallel,,::\n"
      "n:1:7,:2,:::0:2;1;0,2;1;0,2;1;0,2;1;0,::,cpu_parallel,,cpu_parallel,::\n"
      "i:0,1,2,\no:4,6,8,\n"};
  const auto actions = ParseActionList(
      "down,split_2,down,merge,split_2,swap_up,swap_down,split_7,split_32,up,swap_down,swap_down,"
      "merge,down,down,swap_down,swap_down,swap_down,up,down,unroll");
  ASSERT_TRUE(actions.has_value());
  const auto replayed = Replay(ir, *actions, {.on_illegal = OnIllegal::kSkip});
  EXPECT_TRUE(replayed.has_value());
}

}  // namespace
}  // namespace loopfleet::looptree
