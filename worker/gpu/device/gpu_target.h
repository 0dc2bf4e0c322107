#pragma once
// GpuTarget: the Target of an EvaluationPipeline (evaluation_pipeline.h) for kernels on a CUDA
// device. Preparing computes a job's reference. One thread owns the device, where it verifies,
// times (or profiles) and verifies each kernel again before the next one.

#include <chrono>
#include <optional>
#include <type_traits>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/base/clock.h"
#include "common/job/outcome.h"
#include "common/job/profile.h"
#include "monitoring/metrics.h"
#include "worker/coordinator_link/service.h"
#include "worker/evaluation/evaluation_pipeline.h"
#include "worker/evaluation/lease_desk.h"
#include "worker/gpu/device/gpu_judge.h"
#include "worker/gpu/device/gpu_process.h"
#include "worker/processes/compiler_process.h"
#include "worker/processes/reference_process.h"
#include "worker/verification/guarded_buffers.h"
#include "worker/verification/workload.h"

namespace loopfleet::worker {

class GpuTarget {
 public:
  struct Options {
    std::size_t max_held = 64;     // leases at once, waiting ones included
    std::size_t max_prepared = 4;  // jobs compiled and waiting for the device
    std::uint64_t max_tensor_bytes = std::uint64_t{2} << 30;  // inputs and outputs of a job
    std::uint64_t max_scratch_bytes = std::uint64_t{2} << 30;
    std::uint64_t max_code_bytes = std::uint64_t{32} << 20;
    // Consecutive device faults, in jobs and checks, after which the device is given up. One more
    // than the attempts of a job, so that a single job cannot cause it.
    int most_faults = 4;
    std::chrono::milliseconds after_fault{500};  // delay before the next try
    DeviceTruth truth = DeviceTruth::kReal;
    WorkloadCache::Options workloads;
    GuardedBufferPool::Options arenas;
  };
  struct Preparer {
    CompilerProcess& compiler;
    ReferenceProcess& reference;
  };
  // All of it outlives the pipeline, and nothing else uses it meanwhile.
  struct Parts {
    std::vector<Preparer> preparers;  // one thread each
    GpuProcess& device;               // used by the device's thread
    DeviceRetirement& retirement;
    monitoring::WorkerMetrics& metrics;
    const Clock& clock;
  };
  struct Compiled {
    CompiledKernel compiled;
  };
  struct Prepared {
    LeaseId lease;
    JobId job;
    Evaluation evaluation;  // complete but for the verdict
    JobSpec spec;
    GpuCall call;
    std::vector<looptree::TreeRef> launch_roots;  // ProfileMap's
    Instant prepared_at;
  };
  GpuTarget(const Options& options, const Parts& parts, Conditions conditions, LeaseDesk& desk);

  const Conditions& conditions() const { return conditions_; }
  JobLimits limits() const;
  bool RunsAlone(Preparer&, const wire::Lease&, Evaluation&) { return false; }
  std::expected<Compiled, Failure> Compile(Preparer& preparer, const looptree::LoopTree& tree,
                                           const JobSpec& spec);
  // nullopt: the job failed, and its evaluation has the failure.
  std::optional<Prepared> Prepare(Preparer& preparer, const CompiledJob& job, Compiled compiled);
  void Push(Prepared prepared) { prepared_.Push(std::move(prepared)); }
  void Measure();
  void Stop() { prepared_.Close(); }
  std::vector<wire::CodeLookup> TakeCodeLookups() { return {}; }
  void Answer(const wire::CodeLookupAnswer&) {}

 private:
  // False: the device was given up, or the pipeline is closing.
  bool AwaitDevice();
  using Verdict = decltype(Evaluation::verdict);
  // A figure, or what a profile observed.
  std::expected<Verdict, Failure> VerdictOn(Prepared& prepared);
  std::expected<Measurement, Failure> MeasureOne(Prepared& prepared);
  std::expected<Profile, Failure> ProfileOne(Prepared& prepared);
  // What `take` returns for the duration of a run. The kernel is verified before and after.
  template <class Take>
  std::invoke_result_t<Take, Nanos> TakeVerified(Prepared& prepared, const Take& take);
  void NoteFault(const Failure& failure);

  const Options options_;
  Parts parts_;
  const Conditions conditions_;
  LeaseDesk& desk_;
  WorkloadCache workloads_;
  GuardedBufferPool arenas_;
  int faults_ = 0;  // consecutive; used by the device's thread
  BoundedQueue<Prepared> prepared_;
};

}  // namespace loopfleet::worker
