#pragma once
// CpuTarget: the Target of an EvaluationPipeline (evaluation_pipeline.h) for kernels on the cores
// of this host. Preparing runs a kernel once and verifies its output. The timing thread owns the
// timing slot. The number of prepared jobs is bounded; nothing is timed ahead. A kernel whose
// machine code was measured before is not measured again: the worker remembers (measured_code.h),
// or the coordinator's store does (code_lookups.h), which is asked while the kernel is verified. A
// kernel is measured in several rounds (worker/timing/measurement_rounds.h), and other kernels use
// the slot between them. Probes, profiles (worker/evaluation/profiler.h) and canaries run while the
// slot is empty.

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/base/clock.h"
#include "common/job/outcome.h"
#include "monitoring/metrics.h"
#include "worker/coordinator_link/code_lookups.h"
#include "worker/evaluation/evaluation_pipeline.h"
#include "worker/evaluation/lease_desk.h"
#include "worker/evaluation/measured_code.h"
#include "worker/evaluation/profiler.h"
#include "worker/processes/compiler_process.h"
#include "worker/processes/reference_process.h"
#include "worker/processes/timing_slot.h"
#include "worker/timing/awake_core.h"
#include "worker/timing/device_health.h"
#include "worker/verification/code_arena.h"
#include "worker/verification/guarded_buffers.h"
#include "worker/verification/workload.h"

namespace loopfleet::worker {

class CpuTarget {
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
    AwakeCore& awake;
    CodeArena& code;
    monitoring::WorkerMetrics& metrics;
    const Clock& clock;
  };
  struct Compiled {
    CompiledKernel compiled;
    CodeArena::Place place;
  };
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
    Instant first_round_at{};     // when its first round began
    Instant round_at{};           // when the repetitions of its last round began
    Preparations::Mark begun_at;  // of the current round
    bool had_all_cores = true;    // nothing was prepared on its other cores during its rounds
  };
  CpuTarget(const Options& options, const Parts& parts, Conditions conditions, LeaseDesk& desk);

  Conditions conditions() const;  // with the reference clock, which may have been set since
  JobLimits limits() const;
  // Probes and profiles.
  bool RunsAlone(Preparer& preparer, const wire::Lease& lease, Evaluation& evaluation);
  std::expected<Compiled, Failure> Compile(Preparer& preparer, const looptree::LoopTree& tree,
                                           const JobSpec& spec);
  // nullopt: the job is done; its failure, or the figure of a kernel with the same code, is in its
  // evaluation.
  std::optional<Prepared> Prepare(Preparer& preparer, const CompiledJob& job, Compiled compiled);
  void Push(Prepared prepared) { prepared_.Push(std::move(prepared)); }
  void Measure();
  void Stop();
  std::vector<wire::CodeLookup> TakeCodeLookups() { return code_lookups_.TakeAsked(); }
  void Answer(wire::CodeLookupAnswer answer) { code_lookups_.Answer(std::move(answer)); }

 private:
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

  void PrepareProbe(Alone job);
  void PrepareProfile(Preparer& preparer, Alone job);
  std::expected<Profile, Failure> ProfileTree(Preparer& preparer, Alone& job);
  // Waits until `use` was called on the timing thread, while it alone has the slot.
  std::expected<void, Failure> TakeTurn(Alone& job, const std::function<void()>& use);
  enum class Patience { kNow, kWait };
  // Returns the kernel due for another round, else one newly prepared. kWait: waits for one,
  // running canaries while it waits; nullopt: the pipeline is stopping.
  std::optional<Prepared> NextForSlot(Patience patience);
  bool CanaryIsDue() const;
  bool HasOneJob() const { return desk_.CountUnfinished() == 1; }
  void RunCanariesIfDue();
  void RunTurns();
  // The time to wait before the next round; nullopt: enough rounds were measured.
  std::expected<std::optional<Nanos>, Failure> AddRound(Prepared& done, Timed timed);
  std::expected<Measurement, Failure> Judge(const Prepared& done) const;
  // Starts prepared kernels; waits for one if the slot is empty.
  void FillSlot(std::deque<Prepared>& on_slot);
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
  // Runs the kernel once, off the slot, and verifies its output. CUT: HopelessAfter.
  std::expected<Verified, Failure> Verify(Preparer& preparer, const KernelCall& call,
                                          const JobSpec& spec);
  std::expected<std::shared_ptr<GuardedBuffers>, Failure> GuardedBuffersFor(
      const Kernel& kernel, const Workload& workload);

  const Options options_;
  Parts parts_;
  const Conditions conditions_;
  LeaseDesk& desk_;
  WorkloadCache workloads_;
  GuardedBufferPool arenas_;
  MeasuredCode measured_;
  CodeLookups code_lookups_;

  std::multimap<Instant, Prepared> again_;  // by due time; the timing thread's
  BoundedQueue<Prepared> prepared_;
  BoundedQueue<Turn> turns_;
};

}  // namespace loopfleet::worker
