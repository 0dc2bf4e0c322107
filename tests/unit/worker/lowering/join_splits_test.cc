#include "worker/lowering/join_splits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "common/looptree/actions/walk.h"
#include "common/looptree/tree/key.h"
#include "common/looptree/tree/transform.h"

namespace loopfleet::worker {
namespace {

using looptree::LoopTree;
using looptree::TreeNode;
using looptree::TreeRef;

LoopTree Tree(const std::string& uri, const std::string& actions) {
  return looptree::Replay(looptree::BenchmarkUri{uri}, looptree::ParseActionList(actions).value())
      .value()
      .tree;
}

// The loops of the joined tree in order, with their sizes and tails; "" if nothing is joined.
std::string Joined(const LoopTree& tree) {
  const auto joined = JoinSplits(tree);
  if (!joined.has_value()) return "";
  std::string text;
  for (TreeRef ref = 0; ref < joined->tree.nodes().size(); ++ref) {
    const TreeNode& node = joined->tree.nodes()[ref];
    if (node.kind != TreeNode::Kind::kLoop) continue;
    const std::string& name = joined->tree.program().dims[node.dim].name;
    text += fmt::format("{}{}{}{}", text.empty() ? "" : " ", name.substr(0, name.find('_')),
                        node.size, node.tail > 0 ? fmt::format("r{}", node.tail) : "");
    EXPECT_EQ(tree.nodes()[joined->origins[ref]].dim, node.dim);
  }
  return text;
}

TEST(JoinSplits, MakesOneLoopOfASplitThatWasNotMoved) {
  // m k n(256) n'(2), and n for the write.
  EXPECT_EQ(Joined(Tree("benchmark://mm-v0/mm8_512_16", "down,down,split_2")), "m8 k16 n512 n512");
  EXPECT_EQ(Joined(Tree("benchmark://mm-v0/mm8_512_16", "down,down,split_64,split_5,down,split_2")),
            "m8 k16 n512 n512");
}

TEST(JoinSplits, LeavesWhatWasNotSplitOrWasMoved) {
  EXPECT_EQ(Joined(Tree("benchmark://mm-v0/mm8_512_16", "")), "");
  EXPECT_EQ(Joined(Tree("benchmark://mm-v0/mm8_512_16", "down,down,split_2,swap_up")), "");
}

TEST(JoinSplits, LeavesWhatTellsLaterStepsSomething) {
  // Rows: m is side by side in no tensor.
  EXPECT_EQ(Joined(Tree("benchmark://mm-v0/mm64_64_16", "split_4")), "");
  // Parts of a sum, with n inside them.
  EXPECT_EQ(Joined(Tree("benchmark://mm-v0/mm8_64_16", "down,split_4")), "");
  // The whole sum is innermost.
  EXPECT_EQ(Joined(Tree("benchmark://mm-v0/mm8_64_16", "down,swap_down,split_4")), "m8 n64 k16");
}

TEST(JoinSplits, AsksForWhatItsPartsAskFor) {
  using looptree::Annotation;
  const LoopTree split = Tree("benchmark://mm-v0/mm8_512_16", "down,down,split_2");
  const auto joined = [&](Annotation outer, Annotation inner, std::uint32_t threads) {
    const LoopTree tree = looptree::Annotate(split, {{{2, outer}, {3, inner}}}).value();
    const auto made = JoinSplits(tree, threads);
    return made.has_value() ? std::optional(made->tree.nodes()[2].annotation) : std::nullopt;
  };
  EXPECT_EQ(joined(Annotation::kNone, Annotation::kNone, 1), Annotation::kNone);
  EXPECT_EQ(joined(Annotation::kUnroll, Annotation::kNone, 1), Annotation::kUnroll);
  EXPECT_EQ(joined(Annotation::kNone, Annotation::kUnroll, 1), Annotation::kUnroll);
  EXPECT_EQ(joined(Annotation::kUnroll, Annotation::kVectorize, 1), Annotation::kVectorize);
  EXPECT_EQ(joined(Annotation::kThread, Annotation::kNone, 1), Annotation::kNone);
  EXPECT_EQ(joined(Annotation::kThread, Annotation::kNone, 2), std::nullopt);
}

// chain: operations one after another in the same loops over m and n.
TEST(JoinSplits, JoinsLoopsThatOperationsShare) {
  const LoopTree tree = Tree("benchmark://program-v0/chain8_96", "down,split_4");
  const auto joined = JoinSplits(tree);
  ASSERT_TRUE(joined.has_value());
  EXPECT_EQ(looptree::KeyOf(joined->tree),
            looptree::KeyOf(Tree("benchmark://program-v0/chain8_96", "")));
}

// The write's n equals the joined n, but stays a loop of its own.
TEST(JoinSplits, KeepsNestsApart) {
  const auto joined = JoinSplits(Tree("benchmark://mm-v0/mm8_512_16", "down,down,split_2"));
  EXPECT_EQ(looptree::KeyOf(joined->tree),
            looptree::KeyOf(Tree("benchmark://mm-v0/mm8_512_16", "")));
}

// 7 = 3 * 2 + 1 runs before the next 7, but by single elements.
TEST(JoinSplits, JoinsWhatHasTails) {
  EXPECT_EQ(Joined(Tree("benchmark://mm-v0/mm8_13_16", "down,down,split_4")), "m8 k16 n13 n13");
  EXPECT_EQ(Joined(Tree("benchmark://mm-v0/mm8_14_16", "down,down,split_7,down,split_2")),
            "m8 k16 n14 n14");
}

}  // namespace
}  // namespace loopfleet::worker
