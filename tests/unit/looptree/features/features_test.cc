#include "common/looptree/features/features.h"

#include <gtest/gtest.h>

#include <tuple>

#include "common/looptree/actions/walk.h"
#include "common/looptree/text/text.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

TEST(Features, PaddingKeepsTheRowsAndFillsWithZeros) {
  const LoopTree tree = Opened("benchmark://mm-v0/mm64_64_64").start;
  for (const auto& [layout, max_loops, numbers] :
       {std::tuple(FeatureLayout::kAgent20, 10u, 200u),
        std::tuple(FeatureLayout::kAgent58, 20u, 1160u)}) {
    const auto rows = LoopsTensor(tree, 1, layout);
    ASSERT_EQ(rows.size(), 4u);
    const auto padded = PaddedLoopsTensor(tree, 1, layout, max_loops);
    ASSERT_TRUE(padded.has_value());
    ASSERT_EQ(padded->size(), numbers);
    const std::size_t width = RowWidth(layout);
    for (std::size_t i = 0; i < padded->size(); ++i) {
      const std::size_t row = i / width;
      EXPECT_EQ((*padded)[i], row < rows.size() ? rows[row][i % width] : 0.0) << i;
    }
  }
}

TEST(Features, MoreRowsThanRoomAreRefused) {
  const LoopTree tree = Opened("benchmark://mm-v0/mm64_64_64").start;
  EXPECT_TRUE(PaddedLoopsTensor(tree, 0, FeatureLayout::kAgent20, 4).has_value());
  const auto refused = PaddedLoopsTensor(tree, 0, FeatureLayout::kAgent20, 3);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, RejectionCode::kLimitTree);
  EXPECT_NE(refused.error().message.find("4 loops"), std::string::npos);
}

// A read with loops of its own is still the argument: its rows have 8 elements, whatever one
// iteration of its loops covers (spec B.8).
TEST(Features, ReadsWithLoopsAreArguments) {
  const auto tree = ParseIr(
      "v:m\nv:n\nn:2::0,1,:::0:0;4;0,1;8;0,::,,::\nn:12:0,:0,1,:::0:0;4;0,1;8;0,::,,::\n"
      "n:1:1,:0,1,:::0:1;8;0,0;4;0,::,,::\ni:0,\no:2,\n");
  ASSERT_TRUE(tree.has_value()) << tree.error().message;
  const auto rows = LoopsTensor(*tree, 0, FeatureLayout::kAgent20);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0][4 + 3], 1.0);  // m: 8 elements = 2^3 apart
  EXPECT_EQ(rows[1][4 + 0], 1.0);  // n: neighbours
}

// In A, 512 x 512, a step of m is 2^9 elements. A step of 256 m is 2^17, beyond the 16th bucket.
TEST(Features, SixteenBucketsAreTheFirstOfThirtyTwo) {
  const LoopTree start = Opened("benchmark://mm-v0/mm512_512_512").start;
  const auto split = ParseAction("split_256");
  AgentWalk walk({.start = start}, RuleSet::kStructural);
  ASSERT_TRUE(walk.Apply(*split).has_value());
  const auto narrow = StrideHistogram(walk.tree(), 16);
  const auto wide = StrideHistogram(walk.tree(), 32);
  ASSERT_EQ(narrow.size(), 16u);
  ASSERT_EQ(wide.size(), 32u);
  EXPECT_EQ(std::vector(wide.begin(), wide.begin() + 16), narrow);
  EXPECT_GT(wide[17], 0);
}

TEST(Features, PreviousActionsAreNewestFirst) {
  const std::vector<Action> space = {Up{}, Down{}, Split{4}};
  EXPECT_EQ(PreviousActionsTensor({}, space), std::vector<double>(15, 0.0));
  const std::vector<Action> two = {Split{4}, Down{}};
  EXPECT_EQ(PreviousActionsTensor(two, space),
            (std::vector<double>{0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  // The oldest two drop out; split_8 is not in the space, so its row is all 0.
  const std::vector<Action> seven = {Split{4}, Split{4}, Up{}, Down{}, Split{8}, Up{}, Up{}};
  EXPECT_EQ(PreviousActionsTensor(seven, space),
            (std::vector<double>{1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0}));
}

}  // namespace
}  // namespace loopfleet::looptree
