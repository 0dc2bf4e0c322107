#include <gtest/gtest.h>

#include "common/looptree/actions/walk.h"
#include "common/looptree/text/text.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

using Order = SimpleWalk::Order;

SimpleWalk Walked(const char* uri, const std::vector<Action>& actions) {
  SimpleWalk walk(Opened(uri));
  for (const Action& action : actions) EXPECT_TRUE(walk.Apply(action).has_value());
  return walk;
}

std::int64_t Covered(const SimpleWalk& walk) {
  std::int64_t covered = 1;
  for (std::size_t i = 3; i-- > 0;)
    covered = covered * walk.orders()[i].size + walk.orders()[i].tail;
  return covered;
}

TEST(SimpleWalk, SelectModeWrapsBothWays) {
  EXPECT_EQ(Walked("benchmark://loop_tool-cpu-v0/8", {ToggleMode{}, Down{}}).ActionState()[0], 2);
  EXPECT_EQ(
      Walked("benchmark://loop_tool-cpu-v0/8", {ToggleMode{}, Up{}, Up{}, Up{}}).ActionState()[0],
      0);
}

TEST(SimpleWalk, OutermostLoopHasNoParentToTakeFrom) {
  const SimpleWalk walk = Walked("benchmark://loop_tool-cpu-v0/8", {Up{}, Down{}, Up{}});
  EXPECT_EQ(walk.orders()[0], (Order{8, 0}));
}

// "[(341,1), 3, 1]": sizes and tails, written as in the original's comment.
std::string Written(const SimpleWalk& walk) {
  std::string text;
  for (const Order& order : walk.orders()) {
    text += text.empty() ? "[" : ", ";
    text += order.tail == 0
                ? std::to_string(order.size)
                : "(" + std::to_string(order.size) + "," + std::to_string(order.tail) + ")";
  }
  return text + "]";
}

// The example in the original's doc-comment. The original's own code dies at step 7, where the loop
// has a tail.
TEST(SimpleWalk, TheOriginalsOwnExampleCompletes) {
  struct Step {
    std::int64_t cursor;
    Action action;
    const char* sizes;
  };
  SimpleWalk walk = Walked("benchmark://loop_tool-cpu-v0/1024", {});
  EXPECT_EQ(Written(walk), "[1024, 1, 1]");
  for (const Step& step :
       {Step{1, Up{}, "[512, 2, 1]"}, Step{1, Up{}, "[(341,1), 3, 1]"},
        Step{1, Up{}, "[256, 4, 1]"}, Step{2, Up{}, "[256, 2, 2]"},
        Step{2, Up{}, "[256, (1,1), 3]"}, Step{1, Down{}, "[(341,1), 1, 3]"},
        Step{2, Down{}, "[(341,1), (1,1), 2]"}, Step{1, Down{}, "[512, 1, 2]"}}) {
    ASSERT_TRUE(walk.Apply(ToggleMode{}).has_value());
    while (walk.ActionState()[0] != step.cursor) ASSERT_TRUE(walk.Apply(Up{}).has_value());
    ASSERT_TRUE(walk.Apply(ToggleMode{}).has_value());
    ASSERT_TRUE(walk.Apply(step.action).has_value());
    EXPECT_EQ(Written(walk), step.sizes);
    EXPECT_EQ(Covered(walk), 1024);
  }
}

TEST(SimpleWalk, ResizingALoopWithATailKeepsEveryElement) {
  SimpleWalk walk = Walked("benchmark://loop_tool-cpu-v0/1024", {ToggleMode{}, Up{}, ToggleMode{}});
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(walk.Apply(Up{}).has_value());  // loop 1 becomes 7
  ASSERT_TRUE(walk.Apply(ToggleMode{}).has_value());
  ASSERT_TRUE(walk.Apply(Up{}).has_value());
  ASSERT_TRUE(walk.Apply(ToggleMode{}).has_value());
  ASSERT_TRUE(walk.Apply(Up{}).has_value());  // loop 2 becomes 2, loop 1 3 r 1
  EXPECT_EQ(walk.orders()[1], (Order{3, 1}));
  EXPECT_EQ(Covered(walk), 1024);
  ASSERT_TRUE(walk.Apply(ToggleMode{}).has_value());
  ASSERT_TRUE(walk.Apply(Down{}).has_value());
  ASSERT_TRUE(walk.Apply(ToggleMode{}).has_value());
  ASSERT_TRUE(walk.Apply(Up{}).has_value());  // loop 1, which has a tail, becomes 4
  EXPECT_EQ(walk.orders()[1], (Order{4, 0}));
  EXPECT_EQ(walk.orders()[0], (Order{128, 0}));
  EXPECT_EQ(Covered(walk), 1024);
}

TEST(SimpleWalk, DownOnATailOnlyDropsTheTail) {
  SimpleWalk walk = Walked("benchmark://loop_tool-cpu-v0/14",
                           {ToggleMode{}, Up{}, ToggleMode{}, Up{}, Up{}, Up{}, Up{}, Up{}, Up{},
                            ToggleMode{}, Up{}, ToggleMode{}, Up{}});
  ASSERT_EQ(walk.orders()[1], (Order{3, 1}));
  ASSERT_TRUE(walk.Apply(ToggleMode{}).has_value());
  ASSERT_TRUE(walk.Apply(Down{}).has_value());
  ASSERT_TRUE(walk.Apply(ToggleMode{}).has_value());
  ASSERT_TRUE(walk.Apply(Down{}).has_value());
  EXPECT_EQ(walk.orders()[1], (Order{3, 0}));
  EXPECT_EQ(Covered(walk), 14);
}

TEST(SimpleWalk, TreeOfTheDocuments) {
  const SimpleWalk walk =
      Walked("benchmark://loop_tool-cpu-v0/1024",
             {ToggleThread{}, ToggleMode{}, Up{}, ToggleThread{}, ToggleMode{}, Up{}, Up{}});
  const auto tree = walk.Tree();
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(TreeText(*tree, {.dialect = Dialect::kSimple, .target = Target::kCuda}),
            "for a in 341 r 1 : L0\n"
            " for a' in 3 : L1 [thread]\n"
            "  for a'' in 1 : L2\n"
            "   %0[a] <- read()\n"
            "  for a'' in 1 : L4\n"
            "   %1[a] <- read()\n"
            "  for a'' in 1 : L6\n"
            "   %2[a] <- add(%0, %1)\n"
            "  for a'' in 1 : L8\n"
            "   %3[a] <- write(%2)\n");
  EXPECT_NE(TreeText(*tree, {.dialect = Dialect::kSimple}).find("L1 cpu_parallel [thread]\n"),
            std::string::npos);
}

TEST(SimpleWalk, ActionsOfTheOtherDialectAreIllegal) {
  SimpleWalk walk(Opened("benchmark://loop_tool-cpu-v0/8"));
  const auto applied = walk.Apply(SwapDown{});
  ASSERT_FALSE(applied.has_value());
  EXPECT_EQ(applied.error().code, RejectionCode::kInvalidAction);
  EXPECT_TRUE(walk.Apply(IdleSplit{}).has_value());
}

TEST(SimpleWalk, EveryWalkKeepsEveryElement) {
  SplitMix64 random(5);
  const std::vector<Action> actions = {ToggleMode{}, Up{}, Up{}, Down{}, ToggleThread{}};
  for (const char* uri : {"benchmark://loop_tool-cpu-v0/1", "benchmark://loop_tool-cpu-v0/97",
                          "benchmark://loop_tool-cuda-v0/8388607"}) {
    SimpleWalk walk(Opened(uri));
    const std::int64_t elements = Covered(walk);
    for (int step = 0; step < 5000; ++step) {
      ASSERT_TRUE(walk.Apply(actions[random.Below(actions.size())]).has_value());
      ASSERT_EQ(Covered(walk), elements);
    }
    EXPECT_TRUE(walk.Tree().has_value());
  }
}

}  // namespace
}  // namespace loopfleet::looptree
