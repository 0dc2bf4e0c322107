#include "worker/evaluation/cpu_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "common/base/result.h"
#include "common/job/plausibility.h"
#include "common/job/task.h"
#include "worker/verification/buffer_layout.h"

namespace loopfleet::worker {
namespace {

constexpr Nanos kFirstWait = MeasurementRounds::Options{}.first_wait;

}  // namespace

CpuTarget::CpuTarget(const Options& options, const Parts& parts, Conditions conditions,
                     LeaseDesk& desk)
    : options_(options),
      parts_(parts),
      conditions_(std::move(conditions)),
      desk_(desk),
      workloads_(options.workloads),
      arenas_(options.arenas),
      prepared_(options.max_prepared),
      turns_(options.max_held) {}

void CpuTarget::Stop() {
  parts_.slot.Stop();
  turns_.Close();  // first: once the timing thread has seen the end, no turn may come
  prepared_.Close();
}

Conditions CpuTarget::conditions() const {
  Conditions conditions = conditions_;
  conditions.hardware = parts_.device.hardware();
  return conditions;
}

JobLimits CpuTarget::limits() const {
  return {.device = DeviceKind::kCpu,
          .max_threads = options_.max_threads,
          .max_tensor_bytes = options_.max_tensor_bytes};
}

bool CpuTarget::RunsAlone(Preparer& preparer, const wire::Lease& lease, Evaluation& evaluation) {
  const TaskKind kind = TaskOf(lease.spec).kind;
  if (kind != TaskKind::kProbe && kind != TaskKind::kProfile) return false;
  Alone job{.lease = lease, .evaluation = std::move(evaluation)};
  kind == TaskKind::kProbe ? PrepareProbe(std::move(job))
                           : PrepareProfile(preparer, std::move(job));
  return true;
}

std::expected<CpuTarget::Compiled, Failure> CpuTarget::Compile(Preparer& preparer,
                                                               const looptree::LoopTree& tree,
                                                               const JobSpec& spec) {
  parts_.awake.Renew();
  CodeArena::Place place = parts_.code.Take();
  LF_TRY(CompiledKernel compiled,
         preparer.compiler.Compile(tree, place, {.threads = spec.threads}));
  return Compiled{.compiled = std::move(compiled), .place = std::move(place)};
}

std::expected<KernelCall, Failure> CpuTarget::CallFor(Preparer& preparer,
                                                      const looptree::LoopTree& tree,
                                                      const CompiledKernel& compiled,
                                                      CodeArena::Place& code) {
  const Result<std::uint64_t> entry = code.Write(compiled.code);
  if (!entry) {
    return std::unexpected(
        Failure{.code = FailureCode::kCompileError, .message = entry.error().message});
  }
  LF_TRY(auto workload, workloads_.Get(tree, preparer.reference.Maker()));
  LF_TRY(auto arena, GuardedBuffersFor(compiled.kernel, *workload));
  return KernelCall{.entry = *entry, .workload = std::move(workload), .arena = std::move(arena)};
}

std::optional<CpuTarget::Prepared> CpuTarget::Prepare(Preparer& preparer, const CompiledJob& job,
                                                      Compiled compiled) {
  const wire::Lease& lease = job.lease;
  Evaluation& evaluation = job.evaluation;
  const auto fail = [&](Failure failure) {
    evaluation.verdict = std::move(failure);
    return std::nullopt;
  };
  if (auto known = measured_.Find(job.tree.program(), lease.spec, evaluation, job.compiled_at)) {
    evaluation.verdict = *std::move(known);
    evaluation.same_code = true;
    return std::nullopt;
  }
  std::optional<CodeLookups::Question> question;
  if (lease.spec.freshness == Freshness::kAllowStored) {
    question.emplace(code_lookups_, lease.lease, evaluation.code_hash);
    desk_.TellOutput();
  }

  std::expected<KernelCall, Failure> made =
      CallFor(preparer, job.tree, compiled.compiled, compiled.place);
  if (!made) return fail(std::move(made).error());
  KernelCall call = *std::move(made);
  const std::expected<Verified, Failure> verified = Verify(preparer, call, lease.spec);
  const Instant done = parts_.clock.Now();
  evaluation.stages[Stage::kVerify] = done - job.compiled_at;
  if (!verified) return fail(verified.error());
  if (auto stored = question ? AwaitStored(*question, lease.spec, evaluation) : std::nullopt) {
    evaluation.verdict = *std::move(stored);
    evaluation.same_code = true;
    return std::nullopt;
  }
  // It was right on whole numbers; it is timed on fractions, and has to be right on them, too.
  if (auto fractions = workloads_.GetFractions(job.tree, preparer.reference.Maker())) {
    call.workload = std::move(fractions);
  }
  const Instant ready = parts_.clock.Now();
  evaluation.stages[Stage::kVerify] = ready - job.compiled_at;
  const double run_ns =
      verified->run_ns > 0 ? verified->run_ns : static_cast<double>(verified->run_took.count());
  return Prepared{
      .lease = lease.lease,
      .job = lease.job,
      .evaluation = std::move(evaluation),
      .code = std::move(compiled.place),
      .spec = lease.spec,
      .output_bytes = BytesOf(compiled.compiled.kernel.buffers, BufferSpec::Role::kOutput),
      .call = std::move(call),
      .run_took = verified->run_took,
      .waits_since = ready,
      .rounds =
          MeasurementRounds(lease.spec, {.moments_apart = parts_.device.moments_apart(),
                                         .host_slowdown = parts_.device.slowdown(),
                                         .estimated_run_ns = run_ns,
                                         .vector_bytes = compiled.compiled.kernel.vector_bytes,
                                         .expects_long_runs = verified->run_took >= kFirstWait})};
}

std::optional<Measurement> CpuTarget::AwaitStored(CodeLookups::Question& question,
                                                  const JobSpec& spec,
                                                  const Evaluation& evaluation) const {
  const std::optional<Evaluation> stored = question.Await(options_.lookup_patience);
  if (!stored || !stored->conditions) return std::nullopt;
  const double reference_mhz = stored->conditions->hardware.clock_mhz;
  if (!AnswersJob(stored->measurement(), reference_mhz, spec, evaluation)) return std::nullopt;
  return stored->measurement();
}

std::expected<std::shared_ptr<GuardedBuffers>, Failure> CpuTarget::GuardedBuffersFor(
    const Kernel& kernel, const Workload& workload) {
  std::vector<std::uint64_t> counts;
  std::uint64_t elements = 0;
  for (const BufferSpec& buffer : kernel.buffers) {
    if (buffer.role == BufferSpec::Role::kInput) continue;
    counts.push_back(buffer.element_count);
    elements += buffer.element_count;  // CheckBuffers bounded the sum
  }
  if (elements > options_.max_written_bytes / sizeof(float)) {
    return std::unexpected(
        Failure{.code = FailureCode::kRunOom,
                .message = fmt::format("outputs and scratch need {} bytes, this worker allows {}",
                                       elements * sizeof(float), options_.max_written_bytes)});
  }
  auto arena = arenas_.Take(LayOut(counts, workload.layout.buffers.size()));
  if (arena) return *std::move(arena);
  return std::unexpected(Failure{.code = FailureCode::kRunOom, .message = arena.error().message});
}

std::expected<CpuTarget::Verified, Failure> CpuTarget::Verify(Preparer& preparer,
                                                              const KernelCall& call,
                                                              const JobSpec& spec) {
  for (;;) {
    call.arena->Poison();
    std::expected<ExecutorProcess::Ran, Failure> ran =
        preparer.verifier.Run(call, HopelessAfter(spec));
    std::expected<void, Failure> verified;
    if (!ran) {
      verified = std::unexpected(ran.error());
    } else if (ran->was_stopped) {
      verified = std::unexpected(CutUntimed(spec));
    } else {
      verified = call.arena->Check(call.workload->expected);
    }
    if (verified) {
      Verified found{.run_took = ran->passed};
      // For a longer kernel a repetition is one run, or the sampler finds the number at once.
      constexpr Nanos kLong = std::chrono::microseconds(300);
      if (found.run_took < kLong) found.run_ns = preparer.verifier.FindRunNs(call).value_or(0);
      call.arena->Poison();  // correct output must not remain and pass for that of the slot
      return found;
    }
    // Kernels that ran in the same child earlier may have damaged it, or may still be running in it
    // so that this one never started.
    if (preparer.verifier.ran_in_new_child()) {
      return std::unexpected(std::move(verified).error());
    }
    preparer.verifier.Renew();
  }
}

std::optional<CpuTarget::Prepared> CpuTarget::NextForSlot(Patience patience) {
  if (patience == Patience::kWait) desk_.duty().SlotDoes(std::nullopt);
  for (;;) {
    if (patience == Patience::kWait) {
      RunCanariesIfDue();
      RunTurns();
    }
    const Instant now = parts_.clock.Now();
    Nanos wait = options_.idle_wait;
    if (!again_.empty()) {
      auto first = again_.begin();
      Instant due = first->first;
      if (due > now && patience == Patience::kWait) {
        if (again_.size() < options_.max_again) {
          if (std::optional<Prepared> next = prepared_.TryPop()) return next;
        }
        // The core has nothing else to do, so every round waits only as long as the second one.
        first = std::ranges::min_element(again_, {},
                                         [](const auto& entry) { return entry.second.round_at; });
        due = std::min(due, first->second.round_at + kFirstWait);
      }
      if (due <= now) {
        Prepared next = std::move(first->second);
        again_.erase(first);
        return next;
      }
      wait = std::min(wait, due - now);
    }
    const bool is_full = again_.size() >= options_.max_again;
    if (patience == Patience::kNow) return is_full ? std::nullopt : prepared_.TryPop();
    if (is_full) {
      std::this_thread::sleep_for(wait);
    } else if (std::optional<Prepared> next = prepared_.PopWithin(wait)) {
      return next;
    }
    if (prepared_.is_closed()) return std::nullopt;
  }
}

// Between the rounds of a kernel a canary would only delay it, for a while.
bool CpuTarget::CanaryIsDue() const {
  constexpr Nanos kPatience = std::chrono::seconds(1);
  const Instant now = parts_.clock.Now();
  return parts_.device.CanaryIsDue(again_.empty() ? now : now - kPatience);
}

void CpuTarget::RunCanariesIfDue() {
  DeviceHealth& device = parts_.device;
  if (!CanaryIsDue()) return;
  desk_.duty().SlotDoes(Activity::kWait);  // for other workers of this host to free the core
  if (parts_.slot.TakeCore()) {
    desk_.duty().SlotDoes(Activity::kCanary);
    const auto reading = parts_.slot.RunCanaries(device.hardware(), device.probe_steps());
    const bool drifted = device.health().drifting.has_value();
    const Instant now = parts_.clock.Now();
    device.ObserveCanary(reading, now);
    // The reading that ends a drift also forgets: figures came since the one before.
    if (drifted || device.health().drifting) measured_.Forget(now);
  }
  desk_.duty().SlotDoes(std::nullopt);
  parts_.metrics.SetCanaryRatio(device.health().ratio);
}

void CpuTarget::FillSlot(std::deque<Prepared>& on_slot) {
  while (parts_.slot.HasRoom()) {
    // Canaries and turns need the slot to themselves: until they have run, no new kernel starts.
    const bool is_reserved = CanaryIsDue() || !turns_.is_empty();
    if (!on_slot.empty() && is_reserved) return;
    std::optional<Prepared> next = NextForSlot(on_slot.empty() ? Patience::kWait : Patience::kNow);
    if (!next) return;
    if (!desk_.Start(next->lease)) continue;
    Evaluation& evaluation = next->evaluation;
    evaluation.stages[Stage::kQueue] += parts_.clock.Now() - next->waits_since;
    if (on_slot.empty())
      desk_.duty().SlotDoes(Activity::kWait);  // for other workers of this host to free the core
    if (next->rounds.is_empty()) next->first_round_at = parts_.clock.Now();
    next->begun_at = desk_.preparations().Now();
    const SamplingPolicy policy = parts_.device.PolicyFor(next->rounds, HasOneJob());
    const auto begun = parts_.slot.Begin(next->call, policy, next->run_took);
    if (begun) {
      desk_.duty().SlotDoes(Activity::kMeasure);
      on_slot.push_back(*std::move(next));
    } else {
      evaluation.verdict = begun.error();
      desk_.Finish(next->lease, next->job, std::move(evaluation));
    }
  }
}

std::expected<std::optional<Nanos>, Failure> CpuTarget::AddRound(Prepared& done, Timed timed) {
  // Before each round, everything the kernel writes is poisoned. The output is thus known to be
  // right after timing. Of two rounds or more, the first is not checked, to save time.
  const auto check = [&] { return parts_.slot.Check(done.call, done.evaluation.stages); };
  const bool is_first = done.rounds.is_empty();
  if (!is_first) LF_TRY_VOID(check());
  if (desk_.preparations().WereAnySince(done.begun_at)) done.had_all_cores = false;
  done.outside += timed.outside;
  done.round_at = parts_.clock.Now() - Nanos(static_cast<std::int64_t>(TotalNs(timed.samples)));
  desk_.CountSamples(timed.samples);
  parts_.device.Observe(timed.samples);
  done.rounds.Add(std::move(timed.samples), done.evaluation.conditions->hardware.clock_mhz);
  const std::optional<Nanos> next_in = done.rounds.NextIn(HasOneJob());
  if (is_first && !next_in && !done.rounds.IsCut()) LF_TRY_VOID(check());
  return next_in;
}

std::expected<Measurement, Failure> CpuTarget::Judge(const Prepared& done) const {
  parts_.metrics.StageTook(kSlotOverheadLabel, Nanos(done.outside.total_ns()));
  for (std::size_t i = 0; i < kSlotSteps; ++i) {
    parts_.metrics.StageTook(SlotStepLabel(static_cast<SlotStep>(i)), Nanos(done.outside.ns[i]));
  }
  LF_TRY(Measurement measurement, parts_.device.Judge(done.rounds, done.spec,
                                                      {.flop_count = done.evaluation.flop_count,
                                                       .output_bytes = done.output_bytes,
                                                       .threads = done.spec.threads},
                                                      done.evaluation.conditions->hardware));
  // All rounds may share the same disturbance and agree, and no probe watches the kernel's other
  // cores.
  const bool is_disturbed = done.spec.threads > 1 && !done.had_all_cores;
  if (is_disturbed && measurement.grade == Grade::kA) measurement.grade = Grade::kB;
  measurement.grade = std::max(measurement.grade, options_.best_grade);
  if (auto too_coarse = CheckGrade(measurement, done.spec.min_grade)) {
    return std::unexpected(*std::move(too_coarse));
  }
  return measurement;
}

void CpuTarget::Measure() {
  std::deque<Prepared> on_slot;
  for (FillSlot(on_slot); !on_slot.empty(); FillSlot(on_slot)) {
    Prepared done = std::move(on_slot.front());
    on_slot.pop_front();
    Evaluation& evaluation = done.evaluation;
    std::expected<Timed, Failure> timed = parts_.slot.Finish(evaluation.stages);
    desk_.duty().KernelCameOff();
    parts_.awake.Renew();
    // The slot is kept busy while this result is judged.
    if (on_slot.empty()) {
      desk_.duty().SlotDoes(Activity::kVerify);
    } else {
      FillSlot(on_slot);
    }
    const std::expected<std::optional<Nanos>, Failure> next_in =
        timed ? AddRound(done, *std::move(timed)) : std::unexpected(timed.error());
    if (next_in && *next_in) {
      desk_.duty().KernelWasJudged(DutyCycle::Worth::kFigure);  // this round will be part of one
      done.call.arena->Poison();
      done.waits_since = parts_.clock.Now();
      again_.emplace(done.round_at + **next_in, std::move(done));
      continue;
    }
    if (!next_in) {
      evaluation.verdict = next_in.error();
    } else if (auto measured = Judge(done)) {
      evaluation.verdict = *std::move(measured);
      HardwareFacts& hardware = evaluation.conditions->hardware;
      hardware = parts_.device.WithObservedPeaks(std::move(hardware));
      measured_.Add(done.call.workload->program, done.spec, evaluation,
                    {.from = done.first_round_at, .to = parts_.clock.Now()});
    } else {
      evaluation.verdict = std::move(measured).error();
    }
    desk_.account().ShowWorth(evaluation);
    desk_.Finish(done.lease, done.job, std::move(evaluation));
  }
  // A preparing thread may be waiting for their code space or their memory.
  again_.clear();
  while (prepared_.TryPop()) {
  }
  while (std::optional<Turn> turn = turns_.TryPop()) turn->drop();
}

}  // namespace loopfleet::worker
