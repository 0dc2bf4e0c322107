#pragma once
// MemoryShare: what of the host's memory (of the container's, where that is less) the jobs of a
// worker may take. Beyond the most that is ever useful, all of it is a share: a worker in a small
// container refuses jobs, and is not ended by the system.

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace loopfleet::worker {

struct MemoryShare {
  std::uint64_t max_tensor_bytes = std::uint64_t{2} << 30;   // of inputs and outputs of a job
  std::uint64_t max_written_bytes = std::uint64_t{2} << 30;  // of outputs and scratch of a job
  std::size_t max_workload_bytes = std::size_t{6} << 30;     // inputs and references of all jobs
  std::size_t max_kept_workload_bytes = std::size_t{512} << 20;  // of them, those kept for later
  std::size_t max_arena_bytes = std::size_t{3} << 30;            // outputs and scratch of all jobs
  std::size_t max_idle_arena_bytes = std::size_t{256} << 20;     // of them, those kept for later

  static MemoryShare Of(std::uint64_t memory_bytes) {
    MemoryShare share;
    const auto at_most = [&](auto& bytes, std::uint64_t part) {
      bytes = std::min<std::uint64_t>(bytes, memory_bytes / part);
    };
    // While a job is prepared, its tensors exist several times (as inputs, as float64).
    at_most(share.max_tensor_bytes, 8);
    at_most(share.max_written_bytes, 8);
    at_most(share.max_workload_bytes, 4);
    at_most(share.max_kept_workload_bytes, 32);
    at_most(share.max_arena_bytes, 4);
    at_most(share.max_idle_arena_bytes, 32);
    return share;
  }
};

}  // namespace loopfleet::worker
