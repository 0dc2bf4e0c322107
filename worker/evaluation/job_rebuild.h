#pragma once
// RebuildJob: the first step of every evaluation on any device: rebuilds a job's loop tree, or
// returns why this worker cannot run the job.

#include <cstdint>
#include <expected>

#include "common/job/failure.h"
#include "common/job/hardware_facts.h"
#include "common/job/job_spec.h"
#include "common/job/outcome.h"

namespace loopfleet::worker {

struct JobLimits {
  DeviceKind device = DeviceKind::kCpu;  // this worker's device
  std::uint32_t max_threads = 1;         // of a kernel
  std::uint64_t max_tensor_bytes = 0;    // inputs and outputs of a job
};

// Records what it learns in `evaluation`, which already has conditions: threads and cache as the
// job requests, the tree's key, its work. Failures: NO_MATCHING_WORKER, RUN_OOM, LIMIT_FLOPS, or
// those of replaying the actions.
std::expected<looptree::Replayed, Failure> RebuildJob(const JobSpec& spec, const JobLimits& limits,
                                                      Evaluation& evaluation);

}  // namespace loopfleet::worker
