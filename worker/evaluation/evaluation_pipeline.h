#pragma once
// EvaluationPipeline: takes leases, returns reports. Several threads prepare jobs ahead: they
// rebuild the tree, have it compiled and ready it for its target. One thread measures. All that
// depends on what the kernels run on is its Target's:
//
//   struct Options    with max_held
//   struct Preparer   the child processes of one preparing thread
//   struct Parts      with preparers, metrics and clock; all of it outlives the pipeline
//   struct Compiled   with `compiled`, a CompiledKernel
//   struct Prepared   with `lease`; ready to be measured
//   Target(options, parts, conditions, desk)
//   conditions()      those of an evaluation that begins now
//   limits()          JobLimits
//   RunsAlone(preparer, lease, evaluation)    true: the job was no kernel, and is finished
//   Compile(preparer, tree, spec)             expected<Compiled, Failure>
//   Prepare(preparer, job, compiled)          optional<Prepared>; nullopt: the evaluation has the
//                                             job's verdict
//   Push(prepared)    waits for room
//   Measure()         on its own thread, until Stop()
//   TakeCodeLookups(), Answer(answer)         as in LeaseRunner

#include <functional>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "common/job/outcome.h"
#include "kernel/kernel.h"
#include "worker/backend/code_hash.h"
#include "worker/coordinator_link/lease_runner.h"
#include "worker/evaluation/job_rebuild.h"
#include "worker/evaluation/lease_desk.h"

namespace loopfleet::worker {

// A job of which the kernel is compiled.
struct CompiledJob {
  const wire::Lease& lease;
  const looptree::LoopTree& tree;
  Instant compiled_at;
  Evaluation& evaluation;  // complete but for the verdict and Stage::kVerify
};

template <class Target>
class EvaluationPipeline final : public LeaseRunner {
 public:
  // `on_output` is called, on any of its threads, whenever there is a report or a code lookup to
  // collect.
  EvaluationPipeline(const Target::Options& options, const Target::Parts& parts,
                     Conditions conditions, std::function<void()> on_output)
      : clock_(parts.clock),
        preparers_(parts.preparers),
        desk_(options.max_held, parts.metrics, parts.clock, std::move(on_output)),
        target_(options, parts, std::move(conditions), desk_),
        measuring_thread_([this] { target_.Measure(); }) {
    for (Preparer& preparer : preparers_) {
      preparing_threads_.emplace_back([this, &preparer] { PrepareLoop(preparer); });
    }
  }
  // Waits for the steps in progress, each within its limit.
  ~EvaluationPipeline() override {
    desk_.Stop();
    target_.Stop();
    for (std::thread& thread : preparing_threads_) thread.join();
    measuring_thread_.join();
  }

  bool Accept(wire::Lease lease) override { return desk_.Accept(std::move(lease)); }
  void Drop(std::span<const LeaseId> leases) override { desk_.Drop(leases); }
  std::vector<LeaseId> DropUnstarted() override { return desk_.DropUnstarted(); }
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) override {
    return desk_.GiveBack(leases);
  }
  std::vector<wire::Report> TakeFinished() override { return desk_.TakeFinished(); }
  std::vector<wire::HeldLease> Held() const override { return desk_.Held(); }
  std::vector<wire::CodeLookup> TakeCodeLookups() override { return target_.TakeCodeLookups(); }
  void Answer(wire::CodeLookupAnswer answer) override { target_.Answer(std::move(answer)); }

  // For whatever else uses the cores beside the timing core.
  Preparations& preparations() { return desk_.preparations(); }
  // Brings the metrics of the slot's time up to date. Safe from any thread.
  void SettleDuty() { desk_.duty().Settle(); }

 private:
  using Preparer = Target::Preparer;
  using Prepared = Target::Prepared;

  void PrepareLoop(Preparer& preparer) {
    while (std::optional<LeaseBook::Waiting> next = desk_.Next()) {
      const wire::Lease& lease = next->lease;
      Evaluation evaluation;
      evaluation.conditions = target_.conditions();
      evaluation.stages[Stage::kQueue] = clock_.Now() - next->accepted_at;
      if (target_.RunsAlone(preparer, lease, evaluation)) continue;
      std::optional<Prepared> prepared = Prepare(preparer, lease, evaluation);
      if (!prepared) {
        desk_.Finish(lease.lease, lease.job, std::move(evaluation));
      } else if (desk_.IsHeld(prepared->lease)) {
        target_.Push(*std::move(prepared));
      }
    }
  }

  std::optional<Prepared> Prepare(Preparer& preparer, const wire::Lease& lease,
                                  Evaluation& evaluation) {
    const Instant start = clock_.Now();
    const Preparations::UnderWay under_way(desk_.preparations());
    std::optional<DutyCycle::Step> step(std::in_place, desk_.duty(), DutyCycle::Stage::kCompile);
    const auto replayed = RebuildJob(lease.spec, target_.limits(), evaluation);
    if (!replayed) {
      evaluation.verdict = replayed.error();
      return std::nullopt;
    }
    const Instant rebuilt = clock_.Now();
    evaluation.stages[Stage::kReplay] = rebuilt - start;

    auto compiled = target_.Compile(preparer, replayed->tree, lease.spec);
    const Instant compiled_at = clock_.Now();
    evaluation.stages[Stage::kCompile] = compiled_at - rebuilt;
    if (!compiled) {
      evaluation.verdict = std::move(compiled).error();
      return std::nullopt;
    }
    step.emplace(desk_.duty(), DutyCycle::Stage::kVerify);
    const Kernel& kernel = compiled->compiled.kernel;
    evaluation.scratch_bytes = kernel.scratch_bytes;
    evaluation.notes = kernel.notes;
    evaluation.code_hash = CodeHash(kernel.object);
    return target_.Prepare(preparer,
                           {.lease = lease,
                            .tree = replayed->tree,
                            .compiled_at = compiled_at,
                            .evaluation = evaluation},
                           *std::move(compiled));
  }

  const Clock& clock_;
  std::vector<Preparer> preparers_;
  LeaseDesk desk_;
  Target target_;
  std::vector<std::thread> preparing_threads_;
  std::thread measuring_thread_;
};

}  // namespace loopfleet::worker
