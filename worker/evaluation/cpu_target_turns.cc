// The jobs of a CpuTarget that need the slot to themselves: probes and profiles.

#include <latch>
#include <string>
#include <utility>

#include "common/base/result.h"
#include "worker/backend/code_hash.h"
#include "worker/evaluation/cpu_target.h"
#include "worker/evaluation/job_rebuild.h"
#include "worker/evaluation/peaks_probe.h"

namespace loopfleet::worker {

std::expected<void, Failure> CpuTarget::TakeTurn(Alone& job, const std::function<void()>& use) {
  std::latch is_over(1);
  bool was_used = false;
  StageDurations& stages = job.evaluation.stages;
  const Instant waits_since = parts_.clock.Now();
  const bool is_queued = turns_.Push({.lease = job.lease.lease,
                                      .run =
                                          [&] {
                                            const Instant begun = parts_.clock.Now();
                                            stages[Stage::kQueue] += begun - waits_since;
                                            use();
                                            stages[Stage::kMeasure] += parts_.clock.Now() - begun;
                                            was_used = true;
                                            is_over.count_down();
                                          },
                                      .drop = [&] { is_over.count_down(); }});
  if (is_queued) {
    prepared_.Wake();
    is_over.wait();
  }
  if (was_used) return {};
  return std::unexpected(Failure{.code = FailureCode::kShuttingDown,
                                 .message = "the worker stopped, or gave the job back"});
}

void CpuTarget::PrepareProbe(Alone job) {
  Evaluation& evaluation = job.evaluation;
  std::expected<Observed, Failure> observed = Observed{};
  std::expected<void, Failure> went =
      ResolveJob(job.lease.spec, {.device = DeviceKind::kCpu}, evaluation);
  if (went) {
    went = TakeTurn(job,
                    [&] { observed = ObservePeaks(parts_.slot, evaluation.conditions->hardware); });
  }
  if (!went) observed = std::unexpected(std::move(went).error());
  if (observed) {
    evaluation.verdict = *std::move(observed);
  } else {
    evaluation.verdict = std::move(observed).error();
  }
  desk_.Finish(job.lease.lease, job.lease.job, std::move(evaluation));
}

void CpuTarget::PrepareProfile(Preparer& preparer, Alone job) {
  const std::expected<Profile, Failure> profile = ProfileTree(preparer, job);
  if (profile) {
    job.evaluation.verdict = ToObserved(*profile);
  } else {
    job.evaluation.verdict = profile.error();
  }
  desk_.Finish(job.lease.lease, job.lease.job, std::move(job.evaluation));
}

std::expected<Profile, Failure> CpuTarget::ProfileTree(Preparer& preparer, Alone& job) {
  const JobSpec& spec = job.lease.spec;
  Evaluation& evaluation = job.evaluation;
  const Instant start = parts_.clock.Now();
  LF_TRY(const looptree::Replayed replayed, RebuildJob(spec, limits(), evaluation));
  evaluation.stages[Stage::kReplay] = parts_.clock.Now() - start;
  std::string code_hash;  // of the plain kernel
  const auto prepare =
      [&](const Instrumentation& instrumentation) -> std::expected<PlacedKernel, Failure> {
    const Preparations::UnderWay under_way(desk_.preparations());
    const Instant begun = parts_.clock.Now();
    CodeArena::Place code = parts_.code.Take();
    LF_TRY(CompiledKernel compiled,
           preparer.compiler.Compile(
               replayed.tree, code, {.threads = spec.threads, .instrumentation = instrumentation}));
    const Instant compiled_at = parts_.clock.Now();
    evaluation.stages[Stage::kCompile] += compiled_at - begun;
    if (instrumentation.kind != Instrumentation::Kind::kCounters) {
      code_hash = CodeHash(compiled.kernel.object);
    }
    LF_TRY(KernelCall call, CallFor(preparer, replayed.tree, compiled, code));
    LF_TRY_VOID(Verify(preparer, call, spec));
    evaluation.stages[Stage::kVerify] += parts_.clock.Now() - compiled_at;
    return PlacedKernel{
        .compiled = std::move(compiled), .code = std::move(code), .call = std::move(call)};
  };
  const auto on_slot = [&](const Profiler::Parts::Use& use) -> std::expected<void, Failure> {
    bool has_core = true;
    LF_TRY_VOID(TakeTurn(job, [&] {
      has_core = parts_.slot.TakeCore();
      if (has_core) parts_.slot.Profile(use);
    }));
    if (has_core) return {};
    return std::unexpected(Failure{.code = FailureCode::kUnstableTiming,
                                   .message = "other workers of this host kept the timing core"});
  };
  auto profile =
      Profiler(replayed.tree, options_.profiles, {.prepare = prepare, .on_slot = on_slot})
          .Run(spec.profile);
  if (profile) profile->code_hash = std::move(code_hash);
  return profile;
}

void CpuTarget::RunTurns() {
  while (std::optional<Turn> turn = turns_.TryPop()) {
    if (!desk_.Start(turn->lease)) {
      turn->drop();
      continue;
    }
    desk_.duty().SlotDoes(Activity::kWait);
    turn->run();
    desk_.duty().SlotDoes(std::nullopt);
  }
}

}  // namespace loopfleet::worker
