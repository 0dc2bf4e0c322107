#pragma once
// GpuPipeline: leases in, reports out, on a GPU. Some threads prepare ahead (rebuild the tree, have
// it compiled, have its reference computed); one has the device, on which a kernel is verified,
// timed, and verified again before the next one comes.

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
    std::size_t max_prepared = 4;  // compiled and waiting for the device
    std::uint64_t max_tensor_bytes = std::uint64_t{2} << 30;  // of inputs and outputs of a job
    std::uint64_t max_scratch_bytes = std::uint64_t{2} << 30;
    // Of one run of a job. What bounds it is the reference, which has a limit of its own.
    std::uint64_t max_flop_count = 1'000'000'000'000;
    std::uint64_t max_code_bytes = std::uint64_t{32} << 20;
    // Faults of the device in a row, jobs' and checks', after which it is given up.
    // One more than a job is tried, so that no single job has a device given up.
    int most_faults = 4;
    std::chrono::milliseconds after_fault{500};  // before the device is tried again
    DeviceTruth truth = DeviceTruth::kReal;
    WorkloadCache::Options workloads;
    GuardedBufferPool::Options arenas;
  };
  struct Preparer {
    CompilerProcess& compiler;
    ReferenceProcess& reference;
  };
  // All of it outlives the pipeline, and is used by nobody else meanwhile.
  struct Parts {
    std::vector<Preparer> preparers;  // a thread for each
    GpuProcess& device;               // used by the device's thread
    DeviceRetirement& retirement;
    monitoring::WorkerMetrics& metrics;
    const Clock& clock;
  };
  // `on_finished` is called on any of its threads whenever there is a report to be taken.
  GpuPipeline(const Options& options, const Parts& parts, Conditions conditions,
              std::function<void()> on_finished);
  ~GpuPipeline() override;  // waits for the steps under way, each within its limit

  bool Accept(wire::Lease lease) override;
  void Drop(std::span<const LeaseId> leases) override;
  std::vector<LeaseId> DropUnstarted() override;
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) override;
  std::vector<wire::Report> TakeFinished() override;
  std::vector<wire::HeldLease> Held() const override;

  // Brings the metrics of the device's time up to now. From any thread.
  void SettleDuty() { account_.duty().Settle(); }

 private:
  struct Prepared {
    LeaseId lease;
    JobId job;
    Evaluation evaluation;  // all but the verdict
    JobSpec spec;
    GpuCall call;
    Instant prepared_at;
  };

  void PrepareLoop(Preparer& preparer);
  void DeviceLoop();
  // Empty if the job is finished already, with a failure, which is in `evaluation`.
  std::optional<Prepared> Prepare(Preparer& preparer, const wire::Lease& lease,
                                  Evaluation& evaluation);
  // False: the device is given up, or the pipeline ends.
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
  int faults_ = 0;  // in a row; of the device's thread
  BoundedQueue<Prepared> prepared_;
  std::vector<std::thread> prepare_threads_;
  std::thread device_thread_;
};

}  // namespace loopfleet::worker
