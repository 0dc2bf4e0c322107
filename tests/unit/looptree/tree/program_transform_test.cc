#include "common/looptree/tree/program_transform.h"

#include <gtest/gtest.h>

#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"
#include "common/looptree/tree/transform.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

std::string TextOf(const Checked<LoopTree>& tree) {
  return tree ? TreeText(*tree, {}) : tree.error().message;
}

TEST(ProgramTransform, CopyInputAndDeleteCopy) {
  const LoopTree start = Opened("benchmark://mm-v0/mm6_8_4").start;
  const auto copied = CopyInput(start, 2, 1);
  EXPECT_EQ(TextOf(copied),
            "for k in 4 : L0\n"
            " for n in 8 : L1\n"
            "  %5[k, n] <- copy(%1)\n"
            "for m in 6 : L3\n"
            " for k in 4 : L4\n"
            "  for n in 8 : L5\n"
            "   %2[m, k, n] <- multiply(%0, %5)\n"
            "   %3[m, n] <- add(%2)\n"
            " for n in 8 : L8\n"
            "  %4[m, n] <- write(%3)\n");
  const auto moved = ComputeAt(*copied, 5, 4);
  EXPECT_EQ(TextOf(moved),
            "%5 (copy) has no results of their own for the iterations of L3 (for m in 6), the"
            " outermost loop around %2 (multiply)");
  const auto deleted = DeleteCopy(*copied, 5);
  ASSERT_TRUE(deleted.has_value()) << deleted.error().message;
  EXPECT_EQ(deleted->program(), start.program());
  EXPECT_EQ(KeyOf(*deleted), KeyOf(start));
  EXPECT_EQ(TextOf(CopyInput(start, 2, 2)), "%2 (multiply) has no input 2: it has 2");
  EXPECT_EQ(TextOf(CopyInput(start, 9, 0)), "there is no operation %9: the program has 5");
  EXPECT_EQ(TextOf(DeleteCopy(start, 2)), "%2 (multiply) is no copy");
}

TEST(ProgramTransform, DeleteCopyKeepsRepetitions) {
  const LoopTree repeated = WholeLoops({.dims = {{"m", 3}, {"n", 4}},
                                        .nodes = {{.op = Op::kRead, .dims = {0}},
                                                  {.op = Op::kCopy, .inputs = {0}, .dims = {0, 1}},
                                                  {.op = Op::kAdd, .inputs = {1}, .dims = {0}},
                                                  {.op = Op::kWrite, .inputs = {2}, .dims = {0}}}})
                                .start;
  EXPECT_EQ(TextOf(DeleteCopy(repeated, 1)), "%1 (copy) repeats its input along other dimensions");
}

TEST(ProgramTransform, SwapNodesChangesTheOrderOfIndependentOperations) {
  const LoopTree start = WholeLoops({.dims = {{"m", 3}},
                                     .nodes = {{.op = Op::kRead, .dims = {0}},
                                               {.op = Op::kExp, .inputs = {0}, .dims = {0}},
                                               {.op = Op::kAbs, .inputs = {0}, .dims = {0}},
                                               {.op = Op::kAdd, .inputs = {1, 2}, .dims = {0}},
                                               {.op = Op::kWrite, .inputs = {3}, .dims = {0}}}})
                             .start;
  EXPECT_EQ(TextOf(start),
            "for m in 3 : L0\n"
            " %2[m] <- abs(%0)\n"
            " %1[m] <- exp(%0)\n"
            " %3[m] <- add(%1, %2)\n"
            " %4[m] <- write(%3)\n");
  const auto swapped = SwapNodes(start, 1, 2);
  EXPECT_EQ(TextOf(swapped),
            "for m in 3 : L0\n"
            " %1[m] <- exp(%0)\n"
            " %2[m] <- abs(%0)\n"
            " %3[m] <- add(%1, %2)\n"
            " %4[m] <- write(%3)\n");
  EXPECT_EQ(TextOf(SwapNodes(*swapped, 1, 2)), TextOf(start));
  EXPECT_EQ(TextOf(SwapNodes(start, 1, 3)),
            "%1 (exp) and %3 (add) cannot be exchanged: %3 (add) reads %1 (exp)");
}

TEST(ProgramTransform, SwapVarsChangesTheMemoryOfAResult) {
  const LoopTree start = Opened("benchmark://mm-v0/mm6_8_4").start;
  const auto inner = SwapVars(start, 2, 0, 2);
  EXPECT_EQ(TextOf(inner),
            "for m in 6 : L0\n"
            " for k in 4 : L1\n"
            "  for n in 8 : L2\n"
            "   %2[n, k, m] <- multiply(%0, %1)\n"
            "   %3[m, n] <- add(%2)\n"
            " for n in 8 : L5\n"
            "  %4[m, n] <- write(%3)\n");
  EXPECT_EQ(KeyOf(*SwapVars(*inner, 2, 0, 2)), KeyOf(start));
  EXPECT_EQ(TextOf(SwapVars(start, 3, 0, 1)), "the result of %3 (add) has no dimension k");
  EXPECT_EQ(TextOf(SwapVars(start, 3, 0, 9)), "the result of %3 (add) has no dimension 9");
  EXPECT_EQ(TextOf(SwapVars(start, 0, 0, 1)), "%0 (read) is in its caller's memory");
}

TEST(ProgramTransform, RfactorSumsPartsFirst) {
  const LoopTree start = Opened("benchmark://program-v0/reduce_add4_64").start;
  EXPECT_EQ(TextOf(Rfactor(start, 1, 1)), "L1 is all of k: split it first");
  EXPECT_EQ(TextOf(Rfactor(start, 1, 0)), "%1 (add) does not reduce over m");
  EXPECT_EQ(TextOf(Rfactor(start, 2, 1)), "%2 (write) does not run over L1");
  const LoopTree split = *SplitLoop(start, 1, 16);
  EXPECT_EQ(TextOf(Rfactor(split, 1, 1)),
            "for m in 4 : L0\n"
            " for k_part in 4 : L1\n"
            "  for k_inner in 16 : L2\n"
            "   %4[k_part, m] <- add(%3)\n"
            "  %1[m] <- add(%4)\n"
            " %2[m] <- write(%1)\n");  // 4 parts of 16
  EXPECT_EQ(TextOf(Rfactor(split, 1, 2)),
            "for m in 4 : L0\n"
            " for k_outer in 4 : L1\n"
            "  for k_part in 16 : L2\n"
            "   %4[m, k_part] <- add(%3)\n"
            " for k_part in 16 : L4\n"
            "  %1[m] <- add(%4)\n"
            " %2[m] <- write(%1)\n");  // 16 lanes
  EXPECT_EQ(TextOf(Rfactor(*SplitLoop(split, 1, 2), 1, 2)),
            "for m in 4 : L0\n"
            " for k_outer in 2 : L1\n"
            "  for k_part in 2 : L2\n"
            "   for k_inner in 16 : L3\n"
            "    %4[k_part, m] <- add(%3)\n"
            " for k_part in 2 : L5\n"
            "  %1[m] <- add(%4)\n"
            " %2[m] <- write(%1)\n");  // the middle of three
  const auto uneven = Rfactor(*SplitLoop(start, 1, 10), 1, 1);
  EXPECT_EQ(TextOf(uneven),
            "for m in 4 : L0\n"
            " for k_part in 7 : L1\n"
            "  for k_inner in 10 : L2\n"
            "   %4[k_part, m] <- add(%3)\n"
            "  %1[m] <- add(%4)\n"
            " %2[m] <- write(%1)\n");  // 6 parts of 10, and 4 of the seventh
  EXPECT_TRUE(uneven->program().nodes[3].view[1].guarded);
}

// The products follow to the new dimensions; the inputs are viewed.
TEST(ProgramTransform, RfactorOfAProduct) {
  const LoopTree split = *SplitLoop(Opened("benchmark://mm-v0/mm6_8_12").start, 1, 4);
  const auto factored = Rfactor(split, 3, 1);
  EXPECT_EQ(TextOf(factored),
            "for m in 6 : L0\n"
            " for k_part in 3 : L1\n"
            "  for k_inner in 4 : L2\n"
            "   for n in 8 : L3\n"
            "    %2[m, k_part, k_inner, n] <- multiply(%5, %6)\n"
            "    %7[k_part, m, n] <- add(%2)\n"
            " for n in 8 : L6\n"
            "  for k_part in 3 : L7\n"
            "   %3[m, n] <- add(%7)\n"
            "  %4[m, n] <- write(%3)\n");
  EXPECT_EQ(IrTextOf(*factored),
            "v:m\n"
            "v:k\n"
            "v:n\n"
            "v:k_part\n"
            "v:k_inner\n"
            "n:2::0,1,:::0:::::\n"
            "n:2::1,2,:::0:::::\n"
            "n:7:5,6,:0,3,4,2,:::0:0;6;0,3;3;0,4;4;0,2;8;0,::,,,,::\n"
            "n:5:7,:0,2,:::0:0;6;0,2;8;0,3;3;0,::,,,::\n"
            "n:1:3,:0,2,:::0:0;6;0,2;8;0,::,,::\n"
            "n:3:0,:0,3,4,:0|s|m|;3|f|0,|;=0|v|6|;/0|s|k|;3|f|3,|;=0|v|12|;/"
            "0|s|k_part|;3|f|6,|;=0|v|3|;/0|s|k_inner|;3|f|9,|;=0|v|4|;/"
            "0|r|3|;=0|r|6|;0|v|4|;6|f|14,6,|;0|r|9|;5|f|15,9,|;/:0=0,3=1,6=3,9=4,:0:::::\n"
            "n:3:1,:3,4,2,:0|s|k|;3|f|0,|;=0|v|12|;/0|s|n|;3|f|3,|;=0|v|8|;/"
            "0|s|k_part|;3|f|6,|;=0|v|3|;/0|s|k_inner|;3|f|9,|;=0|v|4|;/"
            "0|r|0|;=0|r|6|;0|v|4|;6|f|14,6,|;0|r|9|;5|f|15,9,|;/:0=1,3=2,6=3,9=4,:0:::::\n"
            "n:5:2,:3,0,2,:::0:0;6;0,3;3;0,4;4;0,2;8;0,::,,,,::\n"
            "i:0,1,\n"
            "o:4,\n");
}

TEST(Reorder, PutsLoopsInPlace) {
  const LoopTree start = Opened("benchmark://mm-v0/mm33_9_7").start;  // m, k, n
  EXPECT_EQ(TextOf(Reorder(start, std::vector<TreeRef>{2, 1, 0})),
            "for n in 9 : L0\n"
            " for k in 7 : L1\n"
            "  for m in 33 : L2\n"
            "   %2[m, k, n] <- multiply(%0, %1)\n"
            "   %3[m, n] <- add(%2)\n"
            " for m in 33 : L5\n"
            "  %4[m, n] <- write(%3)\n");
  const LoopTree split = *SplitLoop(start, 0, 8);  // m, m', k, n
  EXPECT_EQ(TextOf(Reorder(split, std::vector<TreeRef>{0, 3, 2, 1})),
            "for m in 4 r 1 : L0\n"
            " for n in 9 : L1\n"
            "  for k in 7 : L2\n"
            "   for m' in 8 : L3\n"
            "    %2[m, k, n] <- multiply(%0, %1)\n"
            "    %3[m, n] <- add(%2)\n"
            "  for m' in 8 : L6\n"
            "   %4[m, n] <- write(%3)\n");
  EXPECT_EQ(
      TextOf(Reorder(split, std::vector<TreeRef>{2, 1, 0})),
      "L0 (for m in 4) and L1 (for m in 8) cannot change places: they run over one dimension");
  EXPECT_EQ(
      TextOf(Reorder(split, std::vector<TreeRef>{2, 0})),
      "L0 (for m in 4) and L1 (for m in 8) cannot change places: they run over one dimension");
  EXPECT_EQ(TextOf(Reorder(start, std::vector<TreeRef>{2, 5})),
            "L2 (for n in 9) and L5 (for n in 9) have no order: neither is inside the other");
  EXPECT_EQ(TextOf(Reorder(start, std::vector<TreeRef>{1, 1})), "L1 (for k in 7) is named twice");
}

TEST(ComputeAt, MovesAProducerToItsReader) {
  const LoopTree start = Opened("benchmark://program-v0/twomm4_5_6_3").start;
  EXPECT_EQ(TextOf(start),
            "for m in 4 : L0\n"
            " for k in 6 : L1\n"
            "  for n in 5 : L2\n"
            "   %3[m, k, n] <- multiply(%0, %1)\n"
            "   %4[m, n] <- add(%3)\n"
            " for n in 5 : L5\n"
            "  for p in 3 : L6\n"
            "   %5[m, n, p] <- multiply(%4, %2)\n"
            "   %6[m, p] <- add(%5)\n"
            " for p in 3 : L9\n"
            "  %7[m, p] <- write(%6)\n");
  for (const TreeRef loop : {5u, 6u}) {
    EXPECT_EQ(TextOf(ComputeAt(start, 4, loop)),
              "for m in 4 : L0\n"
              " for n in 5 : L1\n"
              "  for k in 6 : L2\n"
              "   %3[m, k, n] <- multiply(%0, %1)\n"
              "   %4[m, n] <- add(%3)\n"
              "  for p in 3 : L5\n"
              "   %5[m, n, p] <- multiply(%4, %2)\n"
              "   %6[m, p] <- add(%5)\n"
              " for p in 3 : L8\n"
              "  %7[m, p] <- write(%6)\n")
        << "L" << loop;
  }
  EXPECT_EQ(TextOf(ComputeAt(start, 4, 1)),
            "%5 (multiply) reads %4 (add) outside of L1 (for k in 6)");
  EXPECT_EQ(TextOf(ComputeAt(start, 7, 0)), "nothing reads %7 (write)");
  EXPECT_EQ(TextOf(ComputeAt(start, 0, 0)), "%0 (read) has no loops of its own");
  EXPECT_EQ(TextOf(ComputeAt(*SplitLoop(start, 5, 2), 4, 5)),
            "for m in 4 : L0\n"
            " for n in 2 r 1 : L1\n"
            "  for k in 6 : L2\n"
            "   for n' in 2 : L3\n"
            "    %3[m, k, n] <- multiply(%0, %1)\n"
            "    %4[m, n] <- add(%3)\n"
            "  for n' in 2 : L6\n"
            "   for p in 3 : L7\n"
            "    %5[m, n, p] <- multiply(%4, %2)\n"
            "    %6[m, p] <- add(%5)\n"
            " for p in 3 : L10\n"
            "  %7[m, p] <- write(%6)\n");
  EXPECT_EQ(TextOf(ComputeAt(*Swap(start, 5, 6), 4, 6)),
            "for m in 4 : L0\n"
            " for k in 6 : L1\n"
            "  for n in 5 : L2\n"
            "   %3[m, k, n] <- multiply(%0, %1)\n"
            "   %4[m, n] <- add(%3)\n"
            " for p in 3 : L5\n"
            "  for n in 5 : L6\n"
            "   %5[m, n, p] <- multiply(%4, %2)\n"
            "   %6[m, p] <- add(%5)\n"
            "  %7[m, p] <- write(%6)\n");
}

TEST(Reuse, OfOneOperation) {
  const LoopTree start = Opened("benchmark://program-v0/chain4_6").start;
  EXPECT_EQ(TextOf(start),
            "for m in 4 : L0\n"
            " for n in 6 : L1\n"
            "  %2[m, n] <- multiply(%0, %1)\n"
            "  %3[m, n] <- exp(%2)\n"
            "  %4[m, n] <- add(%3, %0)\n"
            "  %5[m, n] <- write(%4)\n");
  const auto apart = DisableReuse(start, 1, 3);
  EXPECT_EQ(TextOf(apart),
            "for m in 4 : L0\n"
            " for n in 6 : L1\n"
            "  %2[m, n] <- multiply(%0, %1)\n"
            "  %3[m, n] <- exp(%2)\n"
            " for n in 6 : L4\n"
            "  %4[m, n] <- add(%3, %0)\n"
            "  %5[m, n] <- write(%4)\n");
  EXPECT_EQ(TextOf(EnableReuse(*apart, 1, 3)), TextOf(start));
  EXPECT_EQ(TextOf(EnableReuse(start, 1, 3)), TextOf(start));
  EXPECT_EQ(TextOf(DisableReuse(*apart, 1, 3)), TextOf(apart));
  EXPECT_EQ(TextOf(DisableReuse(start, 1, 0)), "%0 (read) does not run over L1 (for n in 6)");
}

}  // namespace
}  // namespace loopfleet::looptree
