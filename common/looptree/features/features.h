#pragma once
// What an agent sees of a tree besides its text: numbers of a fixed layout, one row for each loop
// (spec B.8, B.9), and how far apart in memory consecutive accesses of each loop are.

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
  kAgent58,  // [is_cursor, one of 20 for the dim, size, tail, in_leading_nest, vectorize, unroll,
             //  32 buckets]
};

std::size_t RowWidth(FeatureLayout layout);
std::size_t BucketCount(FeatureLayout layout);

// One row of RowWidth numbers for each loop of the first root, in pre-order. The buckets are the
// row's strides by ceil(log2(stride)), weighted by how often the loop advances, summing to 1; all 0
// for a loop that walks over no tensor. Strides beyond the last bucket are left out.
std::vector<std::vector<double>> LoopsTensor(const LoopTree& tree, TreeRef cursor,
                                             FeatureLayout layout);

// The same rows one after the other, then zeros up to `max_loops` rows: what the original hands to
// a network, 10 x 20 = 200 or 20 x 58 = 1160 numbers. kLimitTree when the tree has more rows.
std::size_t DefaultMaxLoops(FeatureLayout layout);
Checked<std::vector<double>> PaddedLoopsTensor(const LoopTree& tree, TreeRef cursor,
                                               FeatureLayout layout, std::size_t max_loops);

// The same strides, not normalised, over all loops of all roots. The original has 16 buckets, its
// older version 32.
std::vector<double> StrideHistogram(const LoopTree& tree, std::size_t buckets);
inline std::vector<double> StrideHistogram(const LoopTree& tree, FeatureLayout layout) {
  return StrideHistogram(tree, BucketCount(layout));
}

// The last five actions of `history`, newest first, each as one number per action of the space: 1
// for the one that was taken, all 0 for one that the space lacks or where there were fewer than
// five.
inline constexpr std::size_t kPreviousActions = 5;
std::vector<double> PreviousActionsTensor(std::span<const Action> history,
                                          std::span<const Action> action_space);

}  // namespace loopfleet::looptree
