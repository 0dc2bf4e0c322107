#include "worker/cpu/strip_mining.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "common/looptree/actions/walk.h"
#include "common/looptree/text/text.h"

namespace loopfleet::worker {
namespace {

using looptree::TreeRef;

constexpr VectorShape kAvx512{.lanes = 16, .registers = 32, .masks = true};
constexpr VectorShape kAvx2{.lanes = 8, .registers = 16, .masks = true};

looptree::LoopTree Tree(const std::string& uri, const std::string& actions) {
  return looptree::Replay(looptree::BenchmarkUri{uri}, looptree::ParseActionList(actions).value())
      .value()
      .tree;
}

// The loops of the tree after strip mining, in order, with their sizes: "m8 n2 k16 n'128 n'128".
// Empty if nothing is cut.
std::string Cut(const looptree::LoopTree& tree, const VectorShape& shape) {
  const auto cut = StripMine(tree, PlanKernel(tree).value(), shape);
  if (!cut.has_value()) return "";
  std::string text;
  for (TreeRef ref = 0; ref < cut->tree.nodes().size(); ++ref) {
    const looptree::TreeNode& node = cut->tree.nodes()[ref];
    if (node.kind != looptree::TreeNode::Kind::kLoop) continue;
    const std::string& name = cut->tree.program().dims[node.dim].name;
    if (!text.empty()) text += ' ';
    text += name.substr(0, name.find('_')) + std::string(node.dim_depth, '\'');
    text += std::to_string(node.size) + (node.tail > 0 ? "r" + std::to_string(node.tail) : "");
    // Its origin is a loop over the same dim.
    EXPECT_EQ(tree.nodes()[cut->origins[ref]].dim, node.dim);
  }
  return text;
}

TEST(StripMining, LeavesWhatFits) {
  EXPECT_EQ(Cut(Tree("benchmark://mm-v0/mm64_64_64", ""), kAvx512), "");
  EXPECT_EQ(Cut(Tree("benchmark://mm-v0/mm64_64_64", ""), kAvx2), "");
  // A tile of 4 by 32.
  EXPECT_EQ(Cut(Tree("benchmark://mm-v0/mm64_64_64",
                     "split_4,down,swap_down,down,split_32,swap_up,swap_up"),
                kAvx512),
            "");
}

TEST(StripMining, CutsARowThatDoesNotFit) {
  // 32 vectors, 14 registers: three strips, of 11, 11 and 10 vectors.
  EXPECT_EQ(Cut(Tree("benchmark://mm-v0/mm8_256_16", ""), kAvx2), "m8 n2r80 k16 n'88 n256");
  EXPECT_EQ(Cut(Tree("benchmark://mm-v0/mm8_1024_16", ""), kAvx512), "m8 n2r320 k16 n'352 n1024");
}

TEST(StripMining, BringsTheColumnsInside) {
  // m n k: the write is under n too.
  EXPECT_EQ(Cut(Tree("benchmark://mm-v0/mm8_256_16", "down,swap_down"), kAvx512),
            "m8 n2 k16 n'128 n'128");
  // n m k
  EXPECT_EQ(Cut(Tree("benchmark://mm-v0/mm8_64_16", "down,down,swap_up,swap_up"), kAvx512),
            "n1 m8 k16 n'64 n'64");
}

TEST(StripMining, TakesAReductionInwardsWhereNothingFits) {
  // k m n: the write has its own roots and keeps them.
  EXPECT_EQ(Cut(Tree("benchmark://mm-v0/mm64_64_16", "swap_down"), kAvx512), "m64 k16 n64 m64 n64");
  // k n m
  EXPECT_EQ(Cut(Tree("benchmark://mm-v0/mm64_64_16", "swap_down,swap_down"), kAvx512),
            "n1 m64 k16 n'64 m64 n64");
  // A k' outside m is not touched: the k inside m holds the row.
  EXPECT_EQ(Cut(Tree("benchmark://mm-v0/mm64_64_16", "down,split_4,swap_up"), kAvx512), "");
}

// m n k, where n is the columns, whether it asks to be unrolled or not.
TEST(StripMining, CutsALoopThatAsksForUnrolling) {
  const std::string cut =
      Cut(Tree("benchmark://mm-v0/mm8_256_16", "down,swap_down,up,unroll"), kAvx512);
  EXPECT_EQ(cut, Cut(Tree("benchmark://mm-v0/mm8_256_16", "down,swap_down"), kAvx512));
  EXPECT_NE(cut, "");
}

// The outermost loop is annotated `thread`, but the kernel is for one.
TEST(StripMining, CutsALoopThatIsNotSplitOverThreads) {
  EXPECT_EQ(Cut(Tree("benchmark://loop_tool-cpu-v0/1000", ""), kAvx512),
            "a15r40 a'1 a''1 a'''64 a''1 a'''64 a''1 a'''64 a''1 a'''64");
}

TEST(StripMining, LeavesPointwiseLoopsThatAreInOrder) {
  EXPECT_EQ(Cut(Tree("benchmark://program-v0/chain97_203", ""), kAvx512), "");
}

}  // namespace
}  // namespace loopfleet::worker
