#include <gtest/gtest.h>

#include "common/looptree/actions/walk.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

constexpr char kMm[] = "benchmark://mm-v0/mm64_64_64";

TEST(Replay, NamesTheIllegalAction) {
  const std::vector<Action> actions = {Down{}, Split{128}, Up{}};
  const auto rejected = Replay(BenchmarkUri{kMm}, actions);
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, RejectionCode::kInvalidAction);
  EXPECT_EQ(rejected.error().action_index, 1u);
  const auto skipped = Replay(BenchmarkUri{kMm}, actions, {.on_illegal = OnIllegal::kSkip});
  ASSERT_TRUE(skipped.has_value());
  EXPECT_EQ(KeyOf(skipped->tree), KeyOf(skipped->benchmark.start));
}

TEST(Replay, BoundsTheNumberOfActions) {
  const std::vector<Action> actions(1025, Dummy{});
  EXPECT_EQ(Replay(BenchmarkUri{kMm}, actions).error().code, RejectionCode::kLimitActions);
}

// An allowed number of actions on the largest tree is rejected before it takes long, even if
// illegal actions are to be skipped.
TEST(Replay, BoundsTheTreesThatActionsBuild) {
  std::string ir = "v:m\nn:2::0,:::0:::::\n";
  for (int i = 0; i < 200; ++i) ir += "n:15:" + std::to_string(i) + ",:0,:::0:0;8;0,::,::\n";
  ir += "n:1:200,:0,:::0:0;8;0,::,::\ni:0,\no:201,\n";
  const std::vector<Action> few = {Split{2}, Merge{}};
  EXPECT_TRUE(Replay(IrText{ir}, few).has_value());
  for (const OnIllegal on_illegal : {OnIllegal::kReject, OnIllegal::kSkip}) {
    const auto refused =
        Replay(IrText{ir}, std::vector<Action>(1024, Merge{}), {.on_illegal = on_illegal});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, RejectionCode::kLimitActions);
    EXPECT_EQ(refused.error().action_index, 495u);  // 495 x 202 nodes are allowed
  }
}

TEST(Replay, TwiceIsTheSameAsOnce) {
  const std::vector<Action> actions = {Split{8}, Down{}, SwapDown{}, Unroll{}};
  const auto once = Replay(BenchmarkUri{kMm}, actions);
  const auto twice = Replay(BenchmarkUri{kMm}, actions);
  ASSERT_TRUE(once.has_value() && twice.has_value());
  EXPECT_EQ(IrTextOf(once->tree), IrTextOf(twice->tree));
}

TEST(Replay, ProgramsWithoutDimensionsHaveNoLoops) {
  const std::string ir = "v:m\nn:2:::::0:::::\nn:12:0,::::0:::::\nn:1:1,::::0:::::\ni:0,\no:2,\n";
  const auto replayed = Replay(IrText{ir}, {});
  ASSERT_TRUE(replayed.has_value()) << replayed.error().message;
  EXPECT_EQ(replayed->tree.nodes().size(), 2u);
  for (const Action& action : {Action{Up{}}, Action{Down{}}, Action{Split{2}}, Action{Merge{}},
                               Action{Unroll{}}, Action{SwapDown{}}, Action{Vectorize{}}}) {
    const std::vector<Action> actions = {action};
    EXPECT_FALSE(Replay(IrText{ir}, actions).has_value()) << ActionName(action);
  }
  const std::vector<Tensor> inputs = {{2.0F}};
  EXPECT_FLOAT_EQ(Interpret(replayed->tree, inputs)[0][0], std::exp(2.0F));
}

TEST(Replay, BothDialects) {
  const std::vector<Action> actions = {ToggleMode{}, Up{}};
  EXPECT_TRUE(Replay(BenchmarkUri{"benchmark://loop_tool-cpu-v0/8"}, actions).has_value());
  const auto rejected = Replay(BenchmarkUri{kMm}, actions);
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().action_index, 0u);
}

}  // namespace
}  // namespace loopfleet::looptree
