#include "common/looptree/tree/transform.h"

#include <gtest/gtest.h>

#include "common/looptree/text/text.h"
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

// Splits a loop around another loop of its dimension: the tail counts elements of the inner range.
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

// The write's own nest inside m has loops equal to those that are exchanged or merged (spec B.5).
TEST(Transform, EqualLoopsOfAnotherNestChangeToo) {
  const LoopTree start = Opened("benchmark://mm-v0/mm8_8_8").start;
  const auto outside = Swap(*SplitLoop(start, 0, 4), 1, 2);  // m, k, m', n; the write: m, m', n
  const auto merged = MergeLoop(*outside, 2);
  ASSERT_TRUE(merged.has_value() && merged->has_value());
  EXPECT_EQ(TreeText(**merged, {}),
            "for m in 8 : L0\n"
            " for k in 8 : L1\n"
            "  for n in 8 : L2\n"
            "   %2[m, k, n] <- multiply(%0, %1)\n"
            "   %3[m, n] <- add(%2)\n"
            " for n in 8 : L5\n"
            "  %4[m, n] <- write(%3)\n");
  const auto swapped = Swap(start, 0, 2);  // m and the n inside k; the write's n is its equal
  ASSERT_TRUE(swapped.has_value());
  EXPECT_EQ(TreeText(*swapped, {}),
            "for n in 8 : L0\n"
            " for k in 8 : L1\n"
            "  for m in 8 : L2\n"
            "   %2[m, k, n] <- multiply(%0, %1)\n"
            "   %3[m, n] <- add(%2)\n"
            " for m in 8 : L5\n"
            "  %4[m, n] <- write(%3)\n");
}

TEST(Transform, SwapNeedsNestedLoopsOfTwoDimensions) {
  const LoopTree start = Opened("benchmark://mm-v0/mm8_8_8").start;
  EXPECT_FALSE(Swap(start, 2, 5).has_value());  // two nests
  EXPECT_FALSE(Swap(*SplitLoop(start, 0, 2), 0, 1).has_value());
}

std::string Text(const LoopTree& tree) { return TreeText(tree, {}); }

TEST(Transform, MergeAllUndoesEverySplit) {
  const LoopTree start = Opened("benchmark://mm-v0/mm33_9_7").start;
  auto tree = SplitLoop(start, 0, 8);
  tree = SplitLoop(*tree, 1, 3);
  tree = SplitLoop(*tree, 3, 2);
  ASSERT_TRUE(tree.has_value());
  const auto merged = MergeAll(*tree);
  ASSERT_TRUE(merged.has_value());
  EXPECT_EQ(Text(*merged), Text(start));
  EXPECT_EQ(Text(*MergeAll(start)), Text(start));
}

TEST(Transform, AddedLoopsGoRoundOnceAndCanBeRemoved) {
  const LoopTree start = Opened("benchmark://mm-v0/mm4_6_5").start;
  constexpr DimId kM = 0, kK = 1;
  const auto inside = AddLoop(start, 2, kM);  // inside the n that only multiply and add have
  ASSERT_TRUE(inside.has_value());
  EXPECT_EQ(Text(*inside),
            "for m in 4 : L0\n"
            " for k in 5 : L1\n"
            "  for n in 6 : L2\n"
            "   for m' in 1 : L3\n"
            "    %2[m, k, n] <- multiply(%0, %1)\n"
            "    %3[m, n] <- add(%2)\n"
            " for n in 6 : L6\n"
            "  %4[m, n] <- write(%3)\n");
  EXPECT_EQ(Text(*RemoveLoop(*inside, 3)), Text(start));
  const auto outermost = AddLoop(start, std::nullopt, kM);
  ASSERT_TRUE(outermost.has_value());
  EXPECT_EQ(SizeAndTail(*outermost, 0), std::pair(std::int64_t{1}, std::int64_t{0}));
  EXPECT_EQ(Text(*RemoveLoop(*outermost, 0)), Text(start));
  const auto of_two = AddLoop(start, std::nullopt, kK);  // the write has no k
  ASSERT_TRUE(of_two.has_value());
  EXPECT_EQ(of_two->Children(std::nullopt).size(), 2u);
}

TEST(Transform, OneOperationMayLeaveALoop) {
  const LoopTree start = Opened("benchmark://mm-v0/mm4_6_5").start;
  constexpr DimId kM = 0;
  constexpr NodeId kMultiply = 2, kAdd = 3, kWrite = 4;
  const auto both = AddLoop(start, 2, kM);
  ASSERT_TRUE(both.has_value());
  const auto one = RemoveLoop(*both, 3, kAdd);
  ASSERT_TRUE(one.has_value()) << one.error().message;
  EXPECT_EQ(one->LoopsOf(kMultiply).size(), 4u);
  EXPECT_EQ(one->LoopsOf(kAdd).size(), 3u);
  EXPECT_EQ(Text(*RemoveLoop(*one, 3, kMultiply)), Text(start));
  EXPECT_EQ(Text(*RemoveLoop(start, 1, kWrite)), Text(start));  // it does not run over k
  EXPECT_EQ(RemoveLoop(start, 1, kAdd).error().message,
            "L1 (for k in 5) cannot be removed: it has more than one iteration; merge it");
  EXPECT_EQ(RemoveLoop(*both, 3, kWrite).error().message,
            "%4 (write) does not run over L3 (for m in 1)");
}

TEST(Transform, WhatCannotBeAddedOrRemoved) {
  const LoopTree start = Opened("benchmark://mm-v0/mm1_6_5").start;
  const auto message = [](const Checked<LoopTree>& tree) {
    EXPECT_FALSE(tree.has_value());
    return tree ? "" : tree.error().message;
  };
  EXPECT_EQ(message(RemoveLoop(start, 1)),
            "L1 (for k in 5) cannot be removed: it has more than one iteration; merge it");
  EXPECT_EQ(message(RemoveLoop(start, 0)),
            "L0 (for m in 1) cannot be removed: it is an operation's only loop over m");
  EXPECT_EQ(message(AddLoop(start, 5, 1)), "no operation inside L5 (for n in 6) runs over k");
  EXPECT_EQ(message(AddLoop(start, 5, 9)), "there is no dimension 9: the program has 3");
  LoopTree deep = start;
  Checked<LoopTree> next = deep;
  for (int i = 0; i < 40 && next; ++i) {
    deep = *next;
    next = AddLoop(deep, 0, 0);
  }
  ASSERT_FALSE(next.has_value());
  EXPECT_EQ(next.error().code, RejectionCode::kLimitTree);
}

TEST(Transform, ReuseIsGivenUpAndTakenBack) {
  const LoopTree start = Opened("benchmark://mm-v0/mm4_6_5").start;
  EXPECT_EQ(start.ScratchBytes(), (1 + 6) * sizeof(float));
  const auto apart = DecreaseReuse(start, 0);  // three nests, each with its own m
  ASSERT_TRUE(apart.has_value());
  EXPECT_EQ(apart->Children(std::nullopt).size(), 3u);
  // Buffers now hold the whole product and the whole sum.
  EXPECT_EQ(apart->ScratchBytes(), (4 * 5 * 6 + 4 * 6) * sizeof(float));
  // Each nest may share its loop with the next one again.
  auto together = IncreaseReuse(*apart, apart->Children(std::nullopt)[1]);
  ASSERT_TRUE(together.has_value());
  EXPECT_EQ(together->Children(std::nullopt).size(), 2u);
  together = IncreaseReuse(*together, 0);
  ASSERT_TRUE(together.has_value());
  EXPECT_EQ(Text(*together), Text(start));
}

TEST(Transform, ReuseThatIsNotThereCannotBeChanged) {
  const LoopTree start = Opened("benchmark://mm-v0/mm4_6_5").start;
  const auto alone = DecreaseReuse(start, 5);  // the write's own loop
  ASSERT_FALSE(alone.has_value());
  EXPECT_EQ(alone.error().message, "L5 (for n in 6): no two operations share it");
  const auto already = IncreaseReuse(start, 0);
  ASSERT_FALSE(already.has_value());
  EXPECT_EQ(already.error().code, RejectionCode::kInvalidAction);
}

}  // namespace
}  // namespace loopfleet::looptree
