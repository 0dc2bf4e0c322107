#include "worker/llvm_env/prefix_tree.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::worker {
namespace {

std::uint32_t BitOf(passes::Observation observation) {
  return std::uint32_t{1} << static_cast<unsigned>(observation);
}

}  // namespace

PlantedBatch Plant(std::span<const Episode> episodes) {
  PlantedBatch batch;
  PrefixTree& tree = batch.tree;
  tree.nodes.emplace_back();
  std::unordered_map<std::string, std::uint32_t> text_ids;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> children;  // (parent, text)
  for (const Episode& episode : episodes) {
    std::vector<std::uint32_t>& path = batch.paths.emplace_back(1, 0);
    for (const std::string& pass : episode.passes) {
      const auto [text, is_new_text] =
          text_ids.try_emplace(pass, static_cast<std::uint32_t>(tree.texts.size()));
      if (is_new_text) tree.texts.push_back(pass);
      const auto [child, is_new] = children.try_emplace(
          {path.back(), text->second}, static_cast<std::uint32_t>(tree.nodes.size()));
      if (is_new) tree.nodes.push_back({.parent = path.back(), .text = text->second});
      path.push_back(child->second);
    }
    for (const Wanted& wanted : episode.wanted) {
      const bool is_baseline =
          passes::InfoOf(wanted.observation).baseline != passes::Baseline::kNone;
      if (is_baseline) batch.baselines |= BitOf(wanted.observation);
      for (const std::uint32_t step : wanted.steps) {
        LF_CHECK(step < path.size(), "step {} of {}", step, path.size() - 1);
        if (!is_baseline) tree.nodes[path[step]].wanted |= BitOf(wanted.observation);
      }
    }
  }
  return batch;
}

std::vector<std::vector<std::uint32_t>> ChildrenOf(const PrefixTree& tree) {
  std::vector<std::uint32_t> sizes(tree.nodes.size(), 1);
  std::vector<std::vector<std::uint32_t>> children(tree.nodes.size());
  for (std::size_t node = tree.nodes.size() - 1; node > 0; --node) {
    sizes[tree.nodes[node].parent] += sizes[node];
    children[tree.nodes[node].parent].push_back(static_cast<std::uint32_t>(node));
  }
  for (std::vector<std::uint32_t>& siblings : children) {
    const auto largest =
        std::ranges::max_element(siblings, {}, [&](std::uint32_t node) { return sizes[node]; });
    if (largest != siblings.end()) std::iter_swap(largest, siblings.end() - 1);
  }
  return children;
}

}  // namespace loopfleet::worker
