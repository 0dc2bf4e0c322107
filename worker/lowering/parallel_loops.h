#pragma once
// ParallelLoops: which of the loops annotated `thread` can be split over threads so that only the
// order of their iterations changes, and why the others cannot.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

// Which loops are to be split.
enum class ParallelRule : std::uint8_t {
  kAnnotated,  // those annotated `thread`
  // For devices with threads to spare: also, in a root without an annotated loop that can be split,
  // every loop that can be, loops of one iteration included.
  kEvery,
};

struct ParallelLoops {
  // Each group is split as one: a chain of loops, each containing nothing but the next, outermost
  // first.
  std::vector<std::vector<looptree::TreeRef>> groups;
  std::map<looptree::TreeRef, std::string> refused;  // annotated loops that are not split, and why
};

// A loop is refused if an operation in it does not run over its dim, reduces over it, or reads what
// another iteration computes; if it has only one iteration; or if it lies inside a split loop
// without belonging to its group.
ParallelLoops FindParallelLoops(const looptree::LoopTree& tree,
                                ParallelRule rule = ParallelRule::kAnnotated);

}  // namespace loopfleet::worker
