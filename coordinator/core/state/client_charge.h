#pragma once
// Charges jobs to their client's usage: by their size when they are accepted, and discharged one by
// one as they end, each by the batch's average. So no job has to remember its size, and a finished
// batch has nothing left.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/base/check.h"
#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

inline std::uint64_t MemoryBytesOf(const std::vector<ResolvedJob>& jobs) {
  std::uint64_t bytes = 0;
  for (const ResolvedJob& job : jobs) bytes += MemoryBytesOf(job.spec);
  return bytes;
}

inline void ChargeJobs(Transaction& tx, Batch& batch, std::uint64_t jobs, std::uint64_t bytes) {
  batch.pending_jobs += jobs;
  batch.pending_bytes += bytes;
  tx.state.usage.Add(batch.client, jobs, bytes);
}

// Jobs that were not accepted after all.
inline void DischargeJobs(Transaction& tx, Batch& batch, std::uint64_t jobs, std::uint64_t bytes) {
  bytes = jobs == batch.pending_jobs ? batch.pending_bytes : std::min(bytes, batch.pending_bytes);
  batch.pending_jobs -= jobs;
  batch.pending_bytes -= bytes;
  tx.state.usage.Take(batch.client, jobs, bytes);
}

inline void DischargeJob(Transaction& tx, Batch& batch) {
  LF_CHECK(batch.pending_jobs > 0, "batch {} has more outcomes than jobs", batch.id);
  DischargeJobs(tx, batch, 1, batch.pending_bytes / batch.pending_jobs);
}

}  // namespace loopfleet::coordinator
