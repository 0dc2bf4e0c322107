#pragma once
// MemoryBudget: how much of the coordinator's memory each thing may take that grows with what
// others send. An eighth is left for the rest: the tables' fixed part, SQLite's caches, buffers in
// use.

#include <algorithm>
#include <cstdint>

#include "common/wire/bounds.h"
#include "coordinator/core/contract/limits.h"

namespace loopfleet::coordinator {

struct MemoryBudget {
  static constexpr std::uint64_t kLeast = std::uint64_t{256} << 20;  // to start with

  std::uint64_t unfinished_jobs = 0;
  std::uint64_t requests = 0;        // that wait in each of the two queues
  std::uint64_t unread = 0;          // sent on each of the two sockets, and not read by the peers
  std::uint64_t outcomes = 0;        // not yet on disk
  std::uint64_t undurable_jobs = 0;  // these are in memory twice
  // That wait in ZeroMQ from each connection, each of up to 1 MiB: a sixteenth of the memory for
  // kSendingMost connections that send the largest messages all the time.
  int unreceived_messages = 0;
  // An eighth of the memory if each takes kConnectionBytes. An idle one takes 28 KiB.
  std::uint64_t connections = 0;

  explicit MemoryBudget(std::uint64_t bytes)
      : unfinished_jobs(bytes / 8 * 3),
        requests(std::min(kMostWaiting, bytes / 32)),
        unread(std::min(kMostWaiting, bytes / 16)),
        outcomes(bytes / 16),
        undurable_jobs(std::min(kMostWaiting, bytes / 16)),
        unreceived_messages(static_cast<int>(
            std::clamp<std::uint64_t>(bytes / 16 / kSendingMost / wire::kMaxMessageBytes, 2, 64))),
        connections(bytes / 8 / kConnectionBytes) {}

  // Lowers the limits that need memory. One client may take three quarters of all jobs' memory.
  void Apply(Limits& limits) const {
    limits.max_unfinished_bytes = unfinished_jobs;
    limits.max_unfinished_bytes_per_client =
        std::min(limits.max_unfinished_bytes_per_client, unfinished_jobs / 4 * 3);
    limits.max_undurable_outcome_bytes = outcomes;
  }

 private:
  static constexpr std::uint64_t kSendingMost = 64;
  static constexpr std::uint64_t kConnectionBytes = std::uint64_t{256} << 10;
  static constexpr std::uint64_t kMostWaiting = std::uint64_t{256} << 20;
};

}  // namespace loopfleet::coordinator
