#pragma once
// LineSums: out[m, n] = a[m, n + shift] + b[n], and the sums of its lines, over threaded loops: a
// program whose lines are aligned to 16 bytes or not, as its numbers say.

#include <cstdint>
#include <string>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

struct LineSums {
  std::int64_t lines = 1;
  std::int64_t width = 8;
  std::int64_t shift = 0;
  std::int64_t inner = 0;     // n is split into loops of so many; 0: it is not
  bool all_threaded = false;  // of the sums; else m alone is

  std::string Name() const;
  looptree::LoopTree Tree() const;
};

// Every kind of line, those left over included.
std::vector<LineSums> AllLineSums();

}  // namespace loopfleet::worker
