#pragma once
// Pipeline: leases in, reports out. Some threads prepare ahead (rebuild the tree, have it compiled,
// run it once and verify what it wrote); one has the timing slot. What is prepared ahead is
// bounded: code is made and verified ahead of time, never timed ahead. A kernel is looked at in
// several moments (worker/timing/measurement_rounds.h); between them others have the slot.

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/base/clock.h"
#include "common/job/outcome.h"
#include "monitoring/metrics.h"
#include "worker/coordinator_link/lease_book.h"
#include "worker/coordinator_link/lease_runner.h"
#include "worker/evaluation/preparations.h"
#include "worker/evaluation/slot_account.h"
#include "worker/processes/compiler_process.h"
#include "worker/processes/reference_process.h"
#include "worker/processes/timing_slot.h"
#include "worker/timing/device_health.h"
#include "worker/verification/code_arena.h"
#include "worker/verification/guarded_buffers.h"
#include "worker/verification/workload.h"

namespace loopfleet::worker {

class Pipeline final : public LeaseRunner {
 public:
  struct Options {
    std::size_t max_held = 64;                 // leases at once, waiting ones included
    std::size_t max_prepared = 4;              // verified and waiting for the slot
    std::size_t max_again = 64;                // looked at once at least, and waiting for the next
    std::uint32_t max_threads = 1;             // that a kernel may use
    Grade best_grade = Grade::kA;              // that this host allows (grade_limit.h)
    std::chrono::milliseconds idle_wait{500};  // between looks whether canaries are due
    std::uint64_t max_tensor_bytes = std::uint64_t{2} << 30;  // of inputs and outputs of a job
    // Of one run of a job: what a kernel of 10 GFLOP/s does within the usual limit on a run. The
    // reference that outputs are compared with has a limit of its own.
    std::uint64_t max_flop_count = 100'000'000'000;
    std::uint64_t max_written_bytes = std::uint64_t{2} << 30;  // outputs and scratch of a job
    WorkloadCache::Options workloads;
    GuardedBufferPool::Options arenas;
  };
  // What one preparing thread works with.
  struct Preparer {
    CompilerProcess& compiler;
    ReferenceProcess& reference;
    ExecutorProcess& verifier;  // not the one on the slot
  };
  // What it works with; all of it outlives the pipeline, and is used by nobody else meanwhile.
  struct Parts {
    std::vector<Preparer> preparers;  // a thread for each
    TimingSlot& slot;                 // used by the timing thread
    DeviceHealth& device;
    CodeArena& code;
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
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) override;
  std::vector<wire::Report> TakeFinished() override;
  std::vector<wire::HeldLease> Held() const override;

  // Brings the metrics of the slot's time up to now. From any thread.
  void SettleDuty() { account_.duty().Settle(); }

 private:
  struct Prepared {
    LeaseId lease;
    JobId job;
    Evaluation evaluation;  // all but the verdict
    CodeArena::Place code;
    JobSpec spec;
    std::uint64_t output_bytes = 0;
    KernelCall call;
    Nanos run_took;  // Verified::run_took
    Instant waits_since;
    MeasurementRounds rounds;
    SlotTime outside;             // of its looks
    Preparations::Mark begun_at;  // of the look under way
    bool had_all_cores = true;    // nothing was prepared on its other cores during its looks
  };

  void PrepareLoop(Preparer& preparer);
  void TimeLoop();
  enum class Patience { kNow, kWait };
  // What is due for another look, else what is prepared. kWait: waits for it, and runs canaries
  // meanwhile; empty: the pipeline ends.
  std::optional<Prepared> NextForSlot(Patience patience);
  void RunCanariesIfDue();
  // How long to wait until it is looked at again; nullopt: it was looked at often enough.
  std::expected<std::optional<Nanos>, Failure> TakeLook(Prepared& done, Timed timed);
  std::expected<Measurement, Failure> Judge(const Prepared& done) const;
  // Begins what is prepared; waits for something if the slot is empty.
  void FillSlot(std::deque<Prepared>& on_slot);
  // Empty if the job is finished already, with a failure, which is in `evaluation`.
  std::optional<Prepared> Prepare(Preparer& preparer, const wire::Lease& lease,
                                  Evaluation& evaluation);
  struct Verified {
    Nanos run_took;     // of the run that was compared, the asking included
    double run_ns = 0;  // ExecutorProcess::FindRunNs; 0: not known
  };
  // Runs the kernel once, away from the slot, and compares what it wrote.
  std::expected<Verified, Failure> Verify(Preparer& preparer, const KernelCall& call);
  std::expected<std::shared_ptr<GuardedBuffers>, Failure> GuardedBuffersFor(
      const Kernel& kernel, const Workload& workload);
  void Finish(LeaseId lease, JobId job, Evaluation evaluation);
  void Count(const Evaluation& evaluation);

  const Options options_;
  Parts parts_;
  const Conditions conditions_;
  const std::function<void()> on_finished_;
  LeaseBook leases_;
  WorkloadCache workloads_;
  GuardedBufferPool arenas_;
  SlotAccount account_;
  Preparations preparations_;

  std::multimap<Instant, Prepared> again_;  // by when they are due; the timing thread's
  BoundedQueue<Prepared> prepared_;
  std::vector<std::thread> prepare_threads_;
  std::thread time_thread_;
};

}  // namespace loopfleet::worker
