#include "common/looptree/features/features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/result.h"
#include "common/looptree/program/program_facts.h"
#include "common/looptree/tree/stride.h"

namespace loopfleet::looptree {
namespace {

constexpr std::size_t kOneHotDims = 20;

// weights[loop * buckets + bucket]: how often the loop steps by a stride of that bucket.
class StrideTable {
 public:
  StrideTable(const LoopTree& tree, std::size_t buckets)
      : tree_(tree),
        buckets_(buckets),
        weights_(tree.nodes().size() * buckets, 0.0),
        advances_(tree.nodes().size(), 1.0) {
    const auto nodes = tree.nodes();
    for (TreeRef ref = 0; ref < nodes.size(); ++ref) {
      const double outer = nodes[ref].parent == kNoParent ? 1.0 : advances_[nodes[ref].parent];
      advances_[ref] = outer * static_cast<double>(nodes[ref].size);
    }
    for (NodeId tensor = 0; tensor < tree.program().nodes.size(); ++tensor) AddTensor(tensor);
  }

  std::span<const double> Row(TreeRef loop) const {
    return std::span(weights_).subspan(loop * buckets_, buckets_);
  }

 private:
  // Each loop counts once per tensor that it walks over, however many operations inside read it.
  void AddTensor(NodeId tensor) {
    const auto& consumers = tree_.facts().nodes[tensor].consumers;
    const bool is_read = std::any_of(consumers.begin(), consumers.end(),
                                     [&](NodeId consumer) { return tree_.LeafOf(consumer); });
    if (!is_read) return;  // a view of a view: the later view's strides include these
    const auto scope = AllocationOf(tree_, tensor);
    const Strides strides = StridesOf(tree_, tensor);
    std::vector<bool> seen(tree_.nodes().size(), false);
    for (const NodeId consumer : consumers) {
      const auto leaf = tree_.LeafOf(consumer);
      if (!leaf) continue;
      TreeRef loop = tree_.nodes()[*leaf].parent;
      while (loop != kNoParent && loop != scope && !seen[loop]) {
        seen[loop] = true;
        AddStride(loop, strides[tree_.nodes()[loop].dim]);
        loop = tree_.nodes()[loop].parent;
      }
    }
  }

  void AddStride(TreeRef loop, double element_stride) {
    const double stride = std::abs(element_stride) * static_cast<double>(tree_.InnerExtent(loop));
    if (stride < 1) return;
    int exponent = 0;
    const bool power_of_two = std::frexp(stride, &exponent) == 0.5;
    const auto bucket = static_cast<std::size_t>(exponent - (power_of_two ? 1 : 0));
    if (bucket < buckets_) weights_[loop * buckets_ + bucket] += advances_[loop];
  }

  const LoopTree& tree_;
  std::size_t buckets_;
  std::vector<double> weights_;
  std::vector<double> advances_;  // per tree node: product of its size and the sizes around it
};

void AppendHead(const TreeNode& loop, bool at_cursor, bool leading, FeatureLayout layout,
                std::vector<double>& row) {
  row.push_back(at_cursor);
  if (layout == FeatureLayout::kAgent58) {
    row.resize(row.size() + kOneHotDims, 0.0);
    if (loop.dim < kOneHotDims) row[1 + loop.dim] = 1.0;
  }
  row.push_back(static_cast<double>(loop.size));
  row.push_back(static_cast<double>(loop.tail));
  row.push_back(leading);
  if (layout == FeatureLayout::kAgent58) {
    row.push_back(loop.annotation == Annotation::kVectorize);
    row.push_back(loop.annotation == Annotation::kUnroll);
  }
}

}  // namespace

std::size_t RowWidth(FeatureLayout layout) {
  return layout == FeatureLayout::kAgent20 ? 4 + 16 : 6 + kOneHotDims + 32;
}

std::size_t BucketCount(FeatureLayout layout) {
  return layout == FeatureLayout::kAgent20 ? 16 : 32;
}

std::vector<std::vector<double>> LoopsTensor(const LoopTree& tree, TreeRef cursor,
                                             FeatureLayout layout) {
  const StrideTable strides(tree, BucketCount(layout));
  std::vector<std::vector<double>> rows;
  bool leading = true;
  for (TreeRef ref = 0; ref < tree.nodes()[0].end; ++ref) {
    const TreeNode& node = tree.nodes()[ref];
    if (node.kind == TreeNode::Kind::kOperation) {
      leading = false;
      continue;
    }
    std::vector<double>& row = rows.emplace_back();
    row.reserve(RowWidth(layout));
    AppendHead(node, ref == cursor, leading, layout, row);
    const auto weights = strides.Row(ref);
    double sum = 0;
    for (const double weight : weights) sum += weight;
    for (const double weight : weights) row.push_back(sum == 0 ? 0 : weight / sum);
  }
  return rows;
}

Checked<std::vector<double>> PaddedLoopsTensor(const LoopTree& tree, TreeRef cursor,
                                               FeatureLayout layout, std::size_t max_loops) {
  const auto rows = LoopsTensor(tree, cursor, layout);
  if (rows.size() > max_loops) {
    return Reject(
        RejectionCode::kLimitTree,
        fmt::format("the first nest has {} loops; the padded loops_tensor has room for {}",
                    rows.size(), max_loops));
  }
  std::vector<double> padded;
  padded.reserve(max_loops * RowWidth(layout));
  for (const auto& row : rows) padded.insert(padded.end(), row.begin(), row.end());
  padded.resize(max_loops * RowWidth(layout), 0.0);
  return padded;
}

std::vector<double> StrideHistogram(const LoopTree& tree, std::size_t buckets) {
  const StrideTable strides(tree, buckets);
  std::vector<double> histogram(buckets, 0.0);
  for (TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
    if (tree.nodes()[ref].kind != TreeNode::Kind::kLoop) continue;
    const auto weights = strides.Row(ref);
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) histogram[bucket] += weights[bucket];
  }
  return histogram;
}

std::vector<double> PreviousActionsTensor(std::span<const Action> history,
                                          std::span<const Action> action_space) {
  std::vector<double> tensor(kPreviousActions * action_space.size(), 0.0);
  const std::size_t count = std::min(kPreviousActions, history.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Action& action = history[history.size() - 1 - i];
    const auto at = std::find(action_space.begin(), action_space.end(), action);
    if (at == action_space.end()) continue;  // not in this space: its entries stay 0
    tensor[i * action_space.size() + static_cast<std::size_t>(at - action_space.begin())] = 1.0;
  }
  return tensor;
}

}  // namespace loopfleet::looptree
