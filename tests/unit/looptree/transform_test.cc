#include "common/looptree/transform.h"

#include <gtest/gtest.h>

#include "common/looptree/text.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

std::pair<std::int64_t, std::int64_t> SizeAndTail(const LoopTree& tree, TreeRef ref) {
  return {tree.nodes()[ref].size, tree.nodes()[ref].tail};
}

TEST(Transform, SplitWithATail) {
  const auto tree = SplitLoop(Opened("benchmark://mm-v0/mm33_9_7").start, 0, 8);
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(SizeAndTail(*tree, 0), std::pair(std::int64_t{4}, std::int64_t{1}));
  EXPECT_EQ(SizeAndTail(*tree, 1), std::pair(std::int64_t{8}, std::int64_t{0}));
}

// The tail counts elements of the inner range: splitting a loop around another one of its
// dimension.
TEST(Transform, SplitAroundAnInnerLoop) {
  auto tree = SplitLoop(Opened("benchmark://mm-v0/mm33_9_7").start, 0, 4);  // 8 r 1 / 4
  tree = SplitLoop(*tree, 0, 3);                                            // 2 r 9 / 3 / 4
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(SizeAndTail(*tree, 0), std::pair(std::int64_t{2}, std::int64_t{9}));
  EXPECT_EQ(SizeAndTail(*tree, 1), std::pair(std::int64_t{3}, std::int64_t{0}));
  EXPECT_EQ(SizeAndTail(*tree, 2), std::pair(std::int64_t{4}, std::int64_t{0}));
  EXPECT_EQ(tree->InnerExtent(0), 12);
}

TEST(Transform, SplitByTheWholeSizeKeepsALoopOfOne) {
  const auto tree = SplitLoop(Opened("benchmark://mm-v0/mm8_8_8").start, 0, 8);
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(SizeAndTail(*tree, 0), std::pair(std::int64_t{1}, std::int64_t{0}));
  EXPECT_EQ(SizeAndTail(*tree, 1), std::pair(std::int64_t{8}, std::int64_t{0}));
  EXPECT_FALSE(SplitLoop(Opened("benchmark://mm-v0/mm8_8_8").start, 0, 9).has_value());
}

TEST(Transform, MergeUndoesSplit) {
  const LoopTree start = Opened("benchmark://mm-v0/mm33_9_7").start;
  const auto split = SplitLoop(start, 0, 8);
  const auto merged = MergeLoop(*split, 1);
  ASSERT_TRUE(merged.has_value() && merged->has_value());
  EXPECT_EQ(TreeText(**merged, {}), TreeText(start, {}));
  EXPECT_FALSE(MergeLoop(start, 0)->has_value());
}

TEST(Transform, SwapWithinATailKeepsIt) {
  const auto split =
      SplitLoop(Opened("benchmark://mm-v0/mm33_9_7").start, 0, 8);  // m 4 r 1, m' 8, k, n
  const auto swapped = Swap(*split, 1, 2);                          // m, k, m', n
  ASSERT_TRUE(swapped.has_value());
  EXPECT_EQ(TreeText(*swapped, {}),
            "for m in 4 r 1 : L0\n"
            " for k in 7 : L1\n"
            "  for m' in 8 : L2\n"
            "   for n in 9 : L3\n"
            "    %2[m, k, n] <- multiply(%0, %1)\n"
            "    %3[m, n] <- add(%2)\n"
            " for m' in 8 : L6\n"
            "  for n in 9 : L7\n"
            "   %4[m, n] <- write(%3)\n");
}

TEST(Transform, SwapNeedsNestedLoopsOfTwoDimensions) {
  const LoopTree start = Opened("benchmark://mm-v0/mm8_8_8").start;
  EXPECT_FALSE(Swap(start, 2, 5).has_value());  // two nests
  EXPECT_FALSE(Swap(*SplitLoop(start, 0, 2), 0, 1).has_value());
}

}  // namespace
}  // namespace loopfleet::looptree
