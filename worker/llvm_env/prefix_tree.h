#pragma once
// PrefixTree: the episodes of a batch with their common prefixes merged, so that each distinct
// state is computed once. Node 0 is the program; every other node is its parent's state after one
// pass.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "worker/llvm_env/episode.h"

namespace loopfleet::worker {

struct PrefixTree {
  struct Node {
    std::uint32_t parent = 0;  // a node before this one
    std::uint32_t text = 0;    // an index into `texts`
    std::uint32_t wanted = 0;  // bit k: observation number k
  };
  std::vector<std::string> texts;  // distinct
  std::vector<Node> nodes;         // never empty
};
static_assert(static_cast<unsigned>(passes::kLastObservation) < 32);

struct PlantedBatch {
  PrefixTree tree;
  // For each episode the node of each of its steps.
  std::vector<std::vector<std::uint32_t>> paths;
  std::uint32_t baselines = 0;  // bit k: some episode wants observation k, which has a baseline
};
PlantedBatch Plant(std::span<const Episode> episodes);

// The children of each node. The one with the largest subtree comes last: a process walks on to it
// in place and forks for the others, so at most log2(nodes) processes wait for each other.
std::vector<std::vector<std::uint32_t>> ChildrenOf(const PrefixTree& tree);

}  // namespace loopfleet::worker
