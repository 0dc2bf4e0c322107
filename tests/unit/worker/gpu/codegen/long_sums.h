#pragma once
// LongSums: out[m] = what `op` makes of a[m, n + shift] * b[n] over all n: few sums of many terms.

#include <cstdint>
#include <string>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

struct LongSums {
  std::int64_t sums = 1;
  std::int64_t terms = 5000;
  std::int64_t shift = 0;
  std::int64_t inner = 0;  // n is split into loops of so many; 0: it is not
  looptree::Op op = looptree::Op::kAdd;

  std::string Name() const;
  looptree::LoopTree Tree() const;
};

// With tails, aligned and not.
std::vector<LongSums> AllLongSums();

}  // namespace loopfleet::worker
