#pragma once
// Programs that no named benchmark covers: the sources of the `kinds` corpus, and the article's
// workload. In each tree, every node is looped plainly over its dims.

#include <cstdint>
#include <string>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::bench {

// out[m,n] = sum over k of max(A[m,k] * B[k,n], zero): the sum of the positive products. `zero` is
// an input of one element, because IR text gives constants no value.
looptree::LoopTree SumOfPositiveProducts(std::int64_t m, std::int64_t n, std::int64_t k);

// The vector sum of loop_tool-cpu-v0 as one loop over all elements.
looptree::LoopTree VectorSum(std::int64_t n);

struct NamedProgram {
  std::string name;
  looptree::LoopTree tree;
};
// A sum of two vectors, a chain of two products, a transposing copy, a softmax over rows, a product
// with bias and ramp, row statistics, a three-dimensional sum, and a batched product.
std::vector<NamedProgram> ProgramKinds();

}  // namespace loopfleet::bench
