#pragma once
// Programs of other kinds than those that benchmarks are named after: what the corpus of kinds is
// drawn from, and the article's workload. As trees with every node looped plainly over its dims.

#include <cstdint>
#include <string>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::bench {

// out[m,n] = sum over k of max(A[m,k] * B[k,n], zero), with zero an input of one element, as the IR
// text gives constants no value. The sum of the positive products only.
looptree::LoopTree PositiveProducts(std::int64_t m, std::int64_t n, std::int64_t k);

// One loop over all of it, as the add of loop_tool-cpu-v0 would be if its tree had one loop.
looptree::LoopTree VectorSum(std::int64_t n);

struct NamedProgram {
  std::string name;
  looptree::LoopTree tree;
};
// A sum of two vectors, a chain of two products, a transposing copy, softmax of rows, a product
// with bias and ramp, row statistics, a three-dimensional sum, a batch of products.
std::vector<NamedProgram> ProgramKinds();

}  // namespace loopfleet::bench
