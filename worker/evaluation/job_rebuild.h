#pragma once
// The first step of every evaluation on any device: rebuilds what the job is about, or returns why
// this worker cannot run it.

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

// For a job of any kind. Records the subject and the job's conditions in `evaluation`, which
// already has conditions. Failures: MALFORMED, NO_MATCHING_WORKER, or those of TaskInfo::resolve.
std::expected<void, Failure> ResolveJob(const JobSpec& spec, const JobLimits& limits,
                                        Evaluation& evaluation);

// For loop schedules and profiles of them. Records what it learns in `evaluation`, which already
// has conditions: threads and cache as the job requests, the subject, a schedule's work. Failures:
// NO_MATCHING_WORKER, RUN_OOM, LIMIT_FLOPS, or those of replaying the actions; of a profile also
// those of ResolveJob.
std::expected<looptree::Replayed, Failure> RebuildJob(const JobSpec& spec, const JobLimits& limits,
                                                      Evaluation& evaluation);

}  // namespace loopfleet::worker
