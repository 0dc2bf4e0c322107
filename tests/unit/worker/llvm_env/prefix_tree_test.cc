#include "worker/llvm_env/prefix_tree.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

using passes::Observation;

TEST(PrefixTree, CommonPrefixesAreMerged) {
  const std::vector<Episode> episodes = {
      {.passes = {"a", "b", "c"}, .wanted = {{Observation::kInstCount, {3}}}},
      {.passes = {"a", "b", "d"}, .wanted = {{Observation::kAutophase, {2}}}},
      {.passes = {"a", "b"}, .wanted = {{Observation::kInstCount, {0, 2}}}},
      {.passes = {}, .wanted = {{Observation::kIrInstructionCountOz, {0}}}},
  };
  const PlantedBatch batch = Plant(episodes);
  EXPECT_EQ(batch.tree.texts, (std::vector<std::string>{"a", "b", "c", "d"}));
  ASSERT_EQ(batch.tree.nodes.size(), 5U);
  EXPECT_EQ(batch.paths,
            (std::vector<std::vector<std::uint32_t>>{{0, 1, 2, 3}, {0, 1, 2, 4}, {0, 1, 2}, {0}}));
  const auto bit = [](Observation observation) {
    return std::uint32_t{1} << static_cast<unsigned>(observation);
  };
  EXPECT_EQ(batch.tree.nodes[0].wanted, bit(Observation::kInstCount));
  EXPECT_EQ(batch.tree.nodes[2].wanted,
            bit(Observation::kInstCount) | bit(Observation::kAutophase));
  EXPECT_EQ(batch.baselines, bit(Observation::kIrInstructionCountOz));
}

// So the processes that wait at branch points are few, however long a comb is.
TEST(PrefixTree, TheLargestSubtreeComesLast) {
  std::vector<Episode> comb;
  for (std::size_t length = 0; length < 200; ++length) {
    std::vector<std::string> passes(length, "spine");
    passes.emplace_back("tooth");
    comb.push_back({.passes = passes, .wanted = {}});
  }
  const PlantedBatch batch = Plant(comb);
  const auto children = ChildrenOf(batch.tree);
  std::vector<int> waiting(batch.tree.nodes.size());
  for (std::size_t node = 0; node < children.size(); ++node) {
    for (const std::uint32_t child : children[node]) {
      waiting[child] = waiting[node] + (child == children[node].back() ? 0 : 1);
      EXPECT_LE(waiting[child], 8);  // log2 of 400 nodes
    }
  }
}

}  // namespace
}  // namespace loopfleet::worker
