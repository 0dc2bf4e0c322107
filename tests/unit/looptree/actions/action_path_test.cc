#include "common/looptree/actions/action_path.h"

#include <gtest/gtest.h>

#include <string>

#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"
#include "common/looptree/tree/transform.h"
#include "tests/unit/looptree/random_walk.h"

namespace loopfleet::looptree {
namespace {

LoopTree After(const LoopTree& start, const std::vector<Action>& actions) {
  AgentWalk walk(Benchmark{.start = start}, RuleSet::kStructural);
  for (const Action& action : actions) {
    const auto applied = walk.Apply(action);
    LF_CHECK(applied.has_value(), "{}", applied.error().message);
  }
  return walk.tree();
}

std::string PathText(const LoopTree& start, const LoopTree& tree) {
  const auto actions = ActionPath(start, tree);
  if (!actions) return "none";
  EXPECT_EQ(KeyOf(After(start, *actions)), KeyOf(tree));
  std::string text;
  for (const Action& action : *actions) {
    text += (text.empty() ? "" : ",") + std::string(ActionName(action));
  }
  return text;
}

TEST(ActionPath, ByHand) {
  const LoopTree start = Opened("benchmark://mm-v0/mm33_9_7").start;
  EXPECT_EQ(PathText(start, start), "");
  EXPECT_EQ(PathText(start, *SplitLoop(start, 0, 8)), "split_8");
  EXPECT_EQ(PathText(start, *Swap(start, 0, 1)), "swap_down");
  EXPECT_EQ(PathText(start, *Annotate(start, 2, Annotation::kVectorize)), "down,down,vectorize");
  EXPECT_EQ(PathText(*SplitLoop(start, 0, 8), start), "down,merge");
  EXPECT_EQ(PathText(start, *Swap(*SplitLoop(start, 0, 8), 1, 2)), "split_8,down,swap_down");
}

TEST(ActionPath, NoneForWhatNoActionDoes) {
  const LoopTree start = Opened("benchmark://mm-v0/mm33_9_7").start;
  EXPECT_EQ(PathText(start, *Annotate(start, 0, Annotation::kThread)), "none");
  EXPECT_EQ(PathText(start, *Annotate(start, 0, Annotation::kUnroll)), "none");
  EXPECT_EQ(PathText(start, *DecreaseReuse(start, 2)), "none");
  EXPECT_EQ(PathText(start, *AddLoop(start, std::nullopt, 0)), "split_33");  // 1, 33
  EXPECT_EQ(PathText(start, *AddLoop(start, 2, 0)), "none");
  EXPECT_EQ(PathText(start, Opened("benchmark://mm-v0/mm33_9_8").start), "none");
}

TEST(ActionPath, TheArticlesTile) {
  const Benchmark benchmark = Opened("benchmark://program-v0/positive_product33_48_64");
  const auto parsed = ParseActionList(
      "down,swap_down,up,split_32,up,split_8,down,swap_down,down,down,swap_up,swap_up");
  const LoopTree tree = After(benchmark.start, *parsed);
  EXPECT_NE(PathText(benchmark.start, tree), "none");
}

// Trees that actions made. A path is known for most, and leads there.
TEST(ActionPath, OfRandomWalks) {
  SplitMix64 random(91);
  int known = 0;
  int all = 0;
  for (const auto& [name, benchmark] : KindsToWalk()) {
    SCOPED_TRACE(name);
    for (int w = 0; w < 8; ++w) {
      const LoopTree tree = Walked(benchmark, RuleSet::kStructural, 1 + w, random).tree();
      known += PathText(benchmark.start, tree) != "none";
      ++all;
    }
  }
  EXPECT_GT(known, all * 3 / 4) << all;
  RecordProperty("known", known);
}

}  // namespace
}  // namespace loopfleet::looptree
