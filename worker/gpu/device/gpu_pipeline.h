#pragma once
// GpuPipeline: the LeaseRunner of a GPU worker. Several threads prepare jobs ahead: they rebuild
// the tree, have it compiled and have its reference computed. One thread owns the device, where it
// verifies, times and verifies each kernel again before the next one.

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/base/clock.h"
#include "common/job/outcome.h"
#include "monitoring/metrics.h"
#include "worker/coordinator_link/lease_book.h"
#include "worker/coordinator_link/lease_runner.h"
#include "worker/coordinator_link/service.h"
#include "worker/evaluation/slot_account.h"
#include "worker/gpu/device/gpu_judge.h"
#include "worker/gpu/device/gpu_process.h"
#include "worker/processes/compiler_process.h"
#include "worker/processes/reference_process.h"
#include "worker/verification/guarded_buffers.h"
#include "worker/verification/workload.h"

namespace loopfleet::worker {

class GpuPipeline final : public LeaseRunner {
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
  // `on_finished` is called on any of the pipeline's threads whenever a report is ready.
  GpuPipeline(const Options& options, const Parts& parts, Conditions conditions,
              std::function<void()> on_finished);
  ~GpuPipeline() override;  // waits for running steps, each bounded by its limit

  bool Accept(wire::Lease lease) override;
  void Drop(std::span<const LeaseId> leases) override;
  std::vector<LeaseId> DropUnstarted() override;
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) override;
  std::vector<wire::Report> TakeFinished() override;
  std::vector<wire::HeldLease> Held() const override;

  // Brings the metrics of the device's time up to date. Safe from any thread.
  void SettleDuty() { account_.duty().Settle(); }

 private:
  struct Prepared {
    LeaseId lease;
    JobId job;
    Evaluation evaluation;  // complete but for the verdict
    JobSpec spec;
    GpuCall call;
    Instant prepared_at;
  };

  void PrepareLoop(Preparer& preparer);
  void DeviceLoop();
  // nullopt: the job failed, and `evaluation` has the failure.
  std::optional<Prepared> Prepare(Preparer& preparer, const wire::Lease& lease,
                                  Evaluation& evaluation);
  // False: the device was given up, or the pipeline is closing.
  bool AwaitDevice();
  std::expected<Measurement, Failure> Measure(Prepared& prepared);
  void NoteFault(const Failure& failure);
  void Finish(LeaseId lease, JobId job, Evaluation evaluation);

  const Options options_;
  Parts parts_;
  const Conditions conditions_;
  const std::function<void()> on_finished_;
  LeaseBook leases_;
  SlotAccount account_;
  WorkloadCache workloads_;
  GuardedBufferPool arenas_;
  int faults_ = 0;  // consecutive; used by the device's thread
  BoundedQueue<Prepared> prepared_;
  std::vector<std::thread> prepare_threads_;
  std::thread device_thread_;
};

}  // namespace loopfleet::worker
