#pragma once
// Limits on programs, trees and walks. A request beyond one gets a Rejection that names it.

#include <cstdint>

namespace loopfleet::looptree {

struct Limits {
  std::uint32_t actions = 1024;        // per job
  std::uint64_t walk_nodes = 100'000;  // that all actions of a job build: about 5 ms
  std::uint32_t tree_nodes = 256;      // loops and operations
  std::uint32_t tree_depth = 32;
  std::uint64_t footprint_bytes = std::uint64_t{2} << 30;  // all tensors and scratch of one kernel
  std::uint64_t flop_count = 10'000'000'000'000;           // of one iteration
  std::uint32_t text_bytes = 1 << 20;                      // of a program sent as IR text
};

}  // namespace loopfleet::looptree
