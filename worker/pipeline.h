#pragma once
// Pipeline: leases in, reports out, on two threads. One prepares ahead (rebuilds the tree, makes
// the workload, has it compiled); the other has the timing slot. What is prepared ahead is bounded:
// code is made ahead of time, never timed ahead.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "common/base/bounded_queue.h"
#include "common/base/clock.h"
#include "common/job/outcome.h"
#include "monitoring/metrics.h"
#include "worker/compiler_process.h"
#include "worker/lease_runner.h"
#include "worker/timing_slot.h"
#include "worker/workload.h"

namespace loopfleet::worker {

class Pipeline final : public LeaseRunner {
 public:
  struct Options {
    std::size_t max_held = 64;     // leases at once, waiting ones included
    std::size_t max_prepared = 4;  // compiled and waiting for the slot
    std::uint64_t max_tensor_bytes = std::uint64_t{2} << 30;  // of inputs and outputs of a job
    // Of one run of a job. The reference that outputs are compared with takes about a second for each
    // 10^9, and nothing is timed unverified.
    std::uint64_t max_flop_count = 20'000'000'000;
    WorkloadCache::Options workloads;
  };
  // What it works with; all of it outlives the pipeline, and is used by nobody else meanwhile.
  struct Parts {
    CompilerProcess& compiler;  // used by the preparing thread
    TimingSlot& slot;           // used by the timing thread
    monitoring::WorkerMetrics& metrics;
    const Clock& clock;
  };
  // `on_finished` is called on either thread whenever there is a report to be taken.
  Pipeline(const Options& options, const Parts& parts, Conditions conditions,
           std::function<void()> on_finished);
  ~Pipeline() override;  // waits for the steps under way, each within its limit

  bool Accept(wire::Lease lease) override;
  void Drop(std::span<const LeaseId> leases) override;
  std::vector<LeaseId> DropUnstarted() override;
  std::vector<wire::Report> TakeFinished() override;
  std::vector<wire::HeldLease> Held() const override;

 private:
  struct Waiting {
    wire::Lease lease;
    Instant accepted_at;
  };
  struct Prepared {
    LeaseId lease;
    JobId job;
    Evaluation evaluation;  // all but the verdict
    Kernel kernel;
    std::shared_ptr<const Workload> workload;
    Instant prepared_at;
  };

  void PrepareLoop();
  void TimeLoop();
  std::optional<Waiting> NextWaiting();
  // Empty if the job is finished already, with a failure, which is in `evaluation`.
  std::optional<Prepared> Prepare(const wire::Lease& lease, Evaluation& evaluation);
  bool StartTiming(LeaseId lease);
  bool IsHeld(LeaseId lease) const;
  void Finish(LeaseId lease, JobId job, Evaluation evaluation);
  void Count(const Evaluation& evaluation);

  const Options options_;
  const Parts parts_;
  const Conditions conditions_;
  const std::function<void()> on_finished_;
  WorkloadCache workloads_;  // used by the preparing thread

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_, like all down to finished_
  std::deque<Waiting> waiting_;
  std::map<LeaseId, JobId> held_;       // a lease that is not in here is nobody's business any more
  LeaseId timing_;                      // the one on the slot; none: 0
  std::vector<wire::Report> finished_;  // their leases are in held_ until they are taken

  BoundedQueue<Prepared> prepared_;
  std::thread prepare_thread_;
  std::thread time_thread_;
};

}  // namespace loopfleet::worker
