#pragma once
// Pipeline: takes leases, returns reports. Preparing threads work ahead: they rebuild the tree,
// have it compiled, run it once and verify its output. One timing thread owns the timing slot. The
// number of prepared jobs is bounded; nothing is timed ahead. A kernel whose machine code was
// measured before is not measured again: the worker remembers (measured_code.h), or the
// coordinator's store does (code_lookups.h), which is asked while the kernel is verified. A kernel
// is measured in several rounds (worker/timing/measurement_rounds.h), and other kernels use the
// slot between them. Probes, profiles (worker/evaluation/profiler.h) and canaries run while the
// slot is empty.

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
#include "worker/coordinator_link/code_lookups.h"
#include "worker/coordinator_link/lease_book.h"
#include "worker/coordinator_link/lease_runner.h"
#include "worker/evaluation/measured_code.h"
#include "worker/evaluation/preparations.h"
#include "worker/evaluation/profiler.h"
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
    std::size_t max_again = 64;                // measured at least once, waiting for the next round
    std::uint32_t max_threads = 1;             // of a kernel
    Grade best_grade = Grade::kA;              // the best that this host allows (grade_limit.h)
    std::chrono::milliseconds idle_wait{500};  // between checks whether canaries are due
    // How long a verified kernel waits for the answer of the store, before it is measured.
    std::chrono::milliseconds lookup_patience{20};
    std::uint64_t max_tensor_bytes = std::uint64_t{2} << 30;   // inputs and outputs of a job
    std::uint64_t max_written_bytes = std::uint64_t{2} << 30;  // outputs and scratch of a job
    WorkloadCache::Options workloads;
    GuardedBufferPool::Options arenas;
    Profiler::Rules profiles;
  };
  // The child processes of one preparing thread.
  struct Preparer {
    CompilerProcess& compiler;
    ReferenceProcess& reference;
    ExecutorProcess& verifier;  // not the one on the slot
  };
  // All of it outlives the pipeline, which has exclusive use of it.
  struct Parts {
    std::vector<Preparer> preparers;  // one thread each
    TimingSlot& slot;                 // used by the timing thread
    DeviceHealth& device;
    CodeArena& code;
    monitoring::WorkerMetrics& metrics;
    const Clock& clock;
  };
  // `on_output` is called, on any of its threads, whenever there is a report or a code lookup to
  // collect.
  Pipeline(const Options& options, const Parts& parts, Conditions conditions,
           std::function<void()> on_output);
  ~Pipeline() override;  // waits for the steps in progress, each within its limit

  bool Accept(wire::Lease lease) override;
  void Drop(std::span<const LeaseId> leases) override;
  std::vector<LeaseId> DropUnstarted() override;
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) override;
  std::vector<wire::Report> TakeFinished() override;
  std::vector<wire::HeldLease> Held() const override;
  std::vector<wire::CodeLookup> TakeCodeLookups() override { return code_lookups_.TakeAsked(); }
  void Answer(wire::CodeLookupAnswer answer) override { code_lookups_.Answer(std::move(answer)); }

  // Brings the metrics of the slot's time up to date. Safe from any thread.
  void SettleDuty() { account_.duty().Settle(); }

 private:
  struct Prepared {
    LeaseId lease;
    JobId job;
    Evaluation evaluation;  // complete but for the verdict
    CodeArena::Place code;
    JobSpec spec;
    std::uint64_t output_bytes = 0;
    KernelCall call;
    Nanos run_took;  // Verified::run_took
    Instant waits_since;
    MeasurementRounds rounds;
    SlotTime outside;             // of its rounds
    Preparations::Mark begun_at;  // of the current round
    bool had_all_cores = true;    // nothing was prepared on its other cores during its rounds
  };

  // What a job does with the slot to itself.
  struct Turn {
    LeaseId lease;
    std::function<void()> run;   // on the timing thread, while nothing else is on the slot
    std::function<void()> drop;  // called instead if the lease was dropped or the pipeline stops
  };
  // A job that has such turns.
  struct Alone {
    const wire::Lease& lease;
    Evaluation evaluation;  // complete but for the verdict
  };

  void PrepareLoop(Preparer& preparer);
  void PrepareProbe(Alone job);
  void PrepareProfile(Preparer& preparer, Alone job);
  std::expected<Profile, Failure> ProfileTree(Preparer& preparer, Alone& job);
  // Waits until `use` was called on the timing thread, while it alone has the slot.
  std::expected<void, Failure> TakeTurn(Alone& job, const std::function<void()>& use);
  void TimeLoop();
  enum class Patience { kNow, kWait };
  // Returns the kernel due for another round, else one newly prepared. kWait: waits for one,
  // running canaries while it waits; nullopt: the pipeline is stopping.
  std::optional<Prepared> NextForSlot(Patience patience);
  void RunCanariesIfDue();
  void RunTurns();
  // The time to wait before the next round; nullopt: enough rounds were measured.
  std::expected<std::optional<Nanos>, Failure> AddRound(Prepared& done, Timed timed);
  std::expected<Measurement, Failure> Judge(const Prepared& done) const;
  // Starts prepared kernels; waits for one if the slot is empty.
  void FillSlot(std::deque<Prepared>& on_slot);
  // nullopt: the job is done; its failure, or the figure of a kernel with the same code, is in
  // `evaluation`.
  std::optional<Prepared> Prepare(Preparer& preparer, const wire::Lease& lease,
                                  Evaluation& evaluation);
  // The store's figure of the same machine code, if it answers the job.
  std::optional<Measurement> AwaitStored(CodeLookups::Question& question, const JobSpec& spec,
                                         const Evaluation& evaluation) const;
  struct Verified {
    Nanos run_took;     // of the verified run, including the request
    double run_ns = 0;  // ExecutorProcess::FindRunNs; 0: unknown
  };
  // The kernel in its place, with the program's inputs and memory for what it writes.
  std::expected<KernelCall, Failure> CallFor(Preparer& preparer, const looptree::LoopTree& tree,
                                             const CompiledKernel& compiled,
                                             CodeArena::Place& code);
  static ReferenceMaker MakerFor(Preparer& preparer);
  // Runs the kernel once, off the slot, and verifies its output.
  std::expected<Verified, Failure> Verify(Preparer& preparer, const KernelCall& call);
  std::expected<std::shared_ptr<GuardedBuffers>, Failure> GuardedBuffersFor(
      const Kernel& kernel, const Workload& workload);
  void Finish(LeaseId lease, JobId job, Evaluation evaluation);
  void Count(const Evaluation& evaluation);

  const Options options_;
  Parts parts_;
  const Conditions conditions_;
  const std::function<void()> on_output_;
  LeaseBook leases_;
  WorkloadCache workloads_;
  GuardedBufferPool arenas_;
  SlotAccount account_;
  Preparations preparations_;
  MeasuredCode measured_;
  CodeLookups code_lookups_;

  std::multimap<Instant, Prepared> again_;  // by due time; the timing thread's
  BoundedQueue<Prepared> prepared_;
  BoundedQueue<Turn> turns_;
  std::vector<std::thread> prepare_threads_;
  std::thread time_thread_;
};

}  // namespace loopfleet::worker
