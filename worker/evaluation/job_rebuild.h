#pragma once
// RebuildJob: the first step of every evaluation, whatever the device: a job back into its tree, or
// why this worker cannot have it.

#include <cstdint>
#include <expected>

#include "common/job/failure.h"
#include "common/job/hardware_facts.h"
#include "common/job/job_spec.h"
#include "common/job/outcome.h"

namespace loopfleet::worker {

struct JobLimits {
  DeviceKind device = DeviceKind::kCpu;  // of this worker
  std::uint32_t max_threads = 1;         // that a kernel may use
  std::uint64_t max_tensor_bytes = 0;    // of inputs and outputs of a job
  std::uint64_t max_flop_count = 0;      // of one run
};

// What is known on the way goes into `evaluation`, which has conditions already: threads and cache
// as the job wishes them, the tree's key, its work. NO_MATCHING_WORKER, RUN_OOM, LIMIT_FLOPS, or
// what replaying the actions gives.
std::expected<looptree::Replayed, Failure> RebuildJob(const JobSpec& spec, const JobLimits& limits,
                                                      Evaluation& evaluation);

}  // namespace loopfleet::worker
