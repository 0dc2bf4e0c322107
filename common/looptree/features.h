#pragma once
// What an agent sees of a tree besides its text: numbers of a fixed layout, one row for each loop
// (spec B.8, B.9), and how far apart in memory consecutive accesses of each loop are.

#include <cstdint>
#include <vector>

#include "common/looptree/loop_tree.h"

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

// The same strides, not normalised, over all loops of all roots: BucketCount numbers.
std::vector<double> StrideHistogram(const LoopTree& tree, FeatureLayout layout);

}  // namespace loopfleet::looptree
