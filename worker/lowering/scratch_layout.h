#pragma once
// ScratchLayout: where intermediates lie in the scratch area. Two that are never needed at the same
// time share memory.
//
// The lifetime of an intermediate is a range of tree nodes: in each iteration of its scope, from
// the scope's child that computes it to the last child that reads it. Execution passes the nodes of
// a scope in order, so intermediates with disjoint ranges never live together.

#include <cstdint>
#include <span>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

inline constexpr std::uint64_t kScratchAlignment = 64;  // bytes: a cache line, an AVX-512 register

struct ScratchNeed {
  std::uint64_t bytes = 0;
  looptree::TreeRef begin = 0;  // the tree nodes [begin, end) during which it is needed
  looptree::TreeRef end = 0;
};

struct ScratchLayout {
  std::vector<std::uint64_t> offsets;  // of each need, in bytes, multiples of kScratchAlignment
  std::uint64_t bytes = 0;             // of the whole area
};

// Places the needs from the largest to the smallest, each at the lowest offset where it overlaps
// nothing that lives at the same time.
ScratchLayout LayOutScratch(std::span<const ScratchNeed> needs);

}  // namespace loopfleet::worker
