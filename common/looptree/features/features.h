#pragma once
// Features: a tree as numbers for an agent. One row of a fixed layout per loop (spec B.8, B.9), and
// histograms of the strides between consecutive memory accesses.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/looptree/actions/action.h"
#include "common/looptree/program/rejection.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

enum class FeatureLayout : std::uint8_t {
  kAgent20,  // [is_cursor, size, tail, in_leading_nest, 16 buckets]
  kAgent58,  // [is_cursor, 20 one-hot for the dim, size, tail, in_leading_nest, vectorize, unroll,
             //  32 buckets]
};

std::size_t RowWidth(FeatureLayout layout);
std::size_t BucketCount(FeatureLayout layout);

// One row of RowWidth numbers per loop of the first root, in pre-order. The buckets hold the loop's
// strides by ceil(log2(stride)), weighted by how often the loop advances. They sum to 1, or are all
// 0 for a loop that walks over no tensor. Strides beyond the last bucket are left out.
std::vector<std::vector<double>> LoopsTensor(const LoopTree& tree, TreeRef cursor,
                                             FeatureLayout layout);

// The same rows in one vector, padded with zeros to `max_loops` rows. The original feeds this to
// its network: 10 x 20 = 200 or 20 x 58 = 1160 numbers. kLimitTree if the tree has more rows.
Checked<std::vector<double>> PaddedLoopsTensor(const LoopTree& tree, TreeRef cursor,
                                               FeatureLayout layout, std::size_t max_loops);

// The same strides over all loops of all roots, not normalised. The original has 16 buckets; its
// older version has 32.
std::vector<double> StrideHistogram(const LoopTree& tree, std::size_t buckets);
inline std::vector<double> StrideHistogram(const LoopTree& tree, FeatureLayout layout) {
  return StrideHistogram(tree, BucketCount(layout));
}

// The last five actions of `history`, newest first, one-hot over `action_space`. All 0 for an
// action that the space lacks, and beyond the end of a shorter history.
inline constexpr std::size_t kPreviousActions = 5;
std::vector<double> PreviousActionsTensor(std::span<const Action> history,
                                          std::span<const Action> action_space);

}  // namespace loopfleet::looptree
