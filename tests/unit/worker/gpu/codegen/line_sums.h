#pragma once
// LineSums: out[m, n] = a[m, n + shift] + b[n], and the sums of its lines, over loops annotated
// `thread`. The parameters decide whether the lines are aligned to 16 bytes.

#include <cstdint>
#include <string>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

struct LineSums {
  std::int64_t lines = 1;
  std::int64_t width = 8;
  std::int64_t shift = 0;
  std::int64_t inner = 0;     // split factor of n; 0: not split
  bool all_threaded = false;  // loops over n are annotated `thread` too; false: only m

  std::string Name() const;
  looptree::LoopTree Tree() const;
};

// Every kind of line, including lines with remainders.
std::vector<LineSums> AllLineSums();

}  // namespace loopfleet::worker
