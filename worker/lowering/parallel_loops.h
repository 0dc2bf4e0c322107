#pragma once
// ParallelLoops: which of the loops annotated `thread` can be split over threads so that nothing
// but their iterations' order changes, and why the others cannot.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

// Which loops are asked for.
enum class ParallelRule : std::uint8_t {
  kAnnotated,  // those annotated `thread`
  // Devices with threads to spare: in a root that holds none of those that can be split, every
  // loop that can be, loops of one iteration included.
  kEvery,
};

struct ParallelLoops {
  // Each group is split as one: a loop and those that it holds and nothing else, outermost first.
  std::vector<std::vector<looptree::TreeRef>> groups;
  std::map<looptree::TreeRef, std::string> refused;  // of those annotated, and why
};

// A loop is refused if one of the operations in it does not run over its dim, reduces over it, or
// reads what another iteration computes; if it has one iteration only; and inside a loop that is
// split already, unless it is all that this one holds.
ParallelLoops FindParallelLoops(const looptree::LoopTree& tree,
                                ParallelRule rule = ParallelRule::kAnnotated);

}  // namespace loopfleet::worker
