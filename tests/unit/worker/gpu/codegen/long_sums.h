#pragma once
// LongSums: out[m] = the reduction with `op` of a[m, n + shift] * b[n] over n: few sums of many
// terms.

#include <cstdint>
#include <string>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

struct LongSums {
  std::int64_t sums = 1;
  std::int64_t terms = 5000;
  std::int64_t shift = 0;
  std::int64_t inner = 0;  // split factor of n; 0: not split
  looptree::Op op = looptree::Op::kAdd;

  std::string Name() const;
  looptree::LoopTree Tree() const;
};

// With and without tails, aligned and unaligned.
std::vector<LongSums> AllLongSums();

}  // namespace loopfleet::worker
