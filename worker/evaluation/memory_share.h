#pragma once
// MemoryShare: how much of the memory of the host (or container, if smaller) a worker's jobs may
// use. Each share is capped at the most that is ever useful. A worker in a small container then
// refuses jobs instead of being killed for lack of memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "worker/verification/guarded_buffers.h"
#include "worker/verification/workload.h"

namespace loopfleet::worker {

struct MemoryShare {
  std::uint64_t max_tensor_bytes = std::uint64_t{2} << 30;   // inputs and outputs of a job
  std::uint64_t max_written_bytes = std::uint64_t{2} << 30;  // outputs and scratch of a job
  std::size_t max_workload_bytes = std::size_t{6} << 30;     // inputs and references of all jobs
  std::size_t max_kept_workload_bytes = std::size_t{512} << 20;  // the part kept for later jobs
  std::size_t max_arena_bytes = std::size_t{3} << 30;            // outputs and scratch of all jobs
  std::size_t max_idle_arena_bytes = std::size_t{256} << 20;     // the part kept for later jobs

  static MemoryShare Of(std::uint64_t memory_bytes) {
    MemoryShare share;
    const auto at_most = [&](auto& bytes, std::uint64_t part) {
      bytes = std::min<std::uint64_t>(bytes, memory_bytes / part);
    };
    // A job's tensors exist several times while it is prepared (as inputs, as float64).
    at_most(share.max_tensor_bytes, 8);
    at_most(share.max_written_bytes, 8);
    at_most(share.max_workload_bytes, 4);
    at_most(share.max_kept_workload_bytes, 32);
    at_most(share.max_arena_bytes, 4);
    at_most(share.max_idle_arena_bytes, 32);
    return share;
  }

  // `most_kept`: what the configuration lets it keep for later jobs.
  WorkloadCache::Options workloads(std::size_t most_kept) const {
    return {.max_bytes = std::min(most_kept, max_kept_workload_bytes),
            .max_total_bytes = max_workload_bytes};
  }
  GuardedBufferPool::Options arenas() const {
    return {.max_bytes = max_arena_bytes, .max_idle_bytes = max_idle_arena_bytes};
  }
};

}  // namespace loopfleet::worker
