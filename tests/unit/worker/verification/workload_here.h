#pragma once
// A ReferenceMaker that needs no child.

#include <vector>

#include "worker/verification/workload.h"

namespace loopfleet::worker {

inline std::expected<std::vector<bool>, Failure> ComputeHere(const looptree::LoopTree& tree,
                                                             InputSeed seed,
                                                             const SharedMemory& inputs,
                                                             const SharedMemory& reference) {
  return ComputeReference(tree.program(), seed, inputs.bytes(), reference.bytes());
}

}  // namespace loopfleet::worker
