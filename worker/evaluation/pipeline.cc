#include "worker/evaluation/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/result.h"
#include "common/job/plausibility.h"
#include "common/job/task.h"
#include "worker/backend/code_hash.h"
#include "worker/evaluation/job_rebuild.h"

namespace loopfleet::worker {
namespace {

constexpr Nanos kFirstWait = MeasurementRounds::Options{}.first_wait;

}  // namespace

Pipeline::Pipeline(const Options& options, const Parts& parts, Conditions conditions,
                   std::function<void()> on_output)
    : options_(options),
      parts_(parts),
      conditions_(std::move(conditions)),
      on_output_(std::move(on_output)),
      leases_(options.max_held),
      workloads_(options.workloads),
      arenas_(options.arenas),
      account_(leases_, parts.metrics, parts.clock),
      prepared_(options.max_prepared),
      turns_(options.max_held),
      time_thread_([this] { TimeLoop(); }) {
  for (Preparer& preparer : parts_.preparers) {
    prepare_threads_.emplace_back([this, &preparer] { PrepareLoop(preparer); });
  }
}

Pipeline::~Pipeline() {
  leases_.Stop();
  parts_.slot.Stop();
  turns_.Close();  // first: once the timing thread has seen the end, no turn may come
  prepared_.Close();
  for (std::thread& thread : prepare_threads_) thread.join();
  time_thread_.join();
}

bool Pipeline::Accept(wire::Lease lease) {
  const bool accepted = leases_.Accept(std::move(lease), parts_.clock.Now());
  account_.ShowHeld();
  return accepted;
}
void Pipeline::Drop(std::span<const LeaseId> leases) {
  leases_.Drop(leases);
  account_.ShowHeld();
}
std::vector<LeaseId> Pipeline::DropUnstarted() {
  std::vector<LeaseId> dropped = leases_.DropUnstarted();
  account_.ShowHeld();
  return dropped;
}
std::vector<LeaseId> Pipeline::GiveBack(std::span<const LeaseId> leases) {
  std::vector<LeaseId> dropped = leases_.GiveBack(leases);
  account_.ShowHeld();
  return dropped;
}
std::vector<wire::Report> Pipeline::TakeFinished() { return leases_.TakeFinished(); }
std::vector<wire::HeldLease> Pipeline::Held() const { return leases_.Held(); }

void Pipeline::PrepareLoop(Preparer& preparer) {
  while (std::optional<LeaseBook::Waiting> next = leases_.Next()) {
    Evaluation evaluation;
    evaluation.conditions = conditions_;
    evaluation.conditions->hardware =
        parts_.device.hardware();  // the reference clock may have been set since
    evaluation.stages[Stage::kQueue] = parts_.clock.Now() - next->accepted_at;
    const TaskKind kind = TaskOf(next->lease.spec).kind;
    if (kind == TaskKind::kProbe || kind == TaskKind::kProfile) {
      Alone job{.lease = next->lease, .evaluation = std::move(evaluation)};
      kind == TaskKind::kProbe ? PrepareProbe(std::move(job))
                               : PrepareProfile(preparer, std::move(job));
      continue;
    }
    std::optional<Prepared> prepared = Prepare(preparer, next->lease, evaluation);
    if (!prepared) {
      Finish(next->lease.lease, next->lease.job, std::move(evaluation));
    } else if (leases_.IsHeld(prepared->lease)) {
      prepared_.Push(*std::move(prepared));
    }
  }
}

std::expected<KernelCall, Failure> Pipeline::CallFor(Preparer& preparer,
                                                     const looptree::LoopTree& tree,
                                                     const CompiledKernel& compiled,
                                                     CodeArena::Place& code) {
  const Result<std::uint64_t> entry = code.Write(compiled.code);
  if (!entry) {
    return std::unexpected(
        Failure{.code = FailureCode::kCompileError, .message = entry.error().message});
  }
  LF_TRY(auto workload, workloads_.Get(tree, MakerFor(preparer)));
  LF_TRY(auto arena, GuardedBuffersFor(compiled.kernel, *workload));
  return KernelCall{.entry = *entry, .workload = std::move(workload), .arena = std::move(arena)};
}

ReferenceMaker Pipeline::MakerFor(Preparer& preparer) {
  return [&preparer](const looptree::LoopTree& tree, InputSeed seed, const SharedMemory& inputs,
                     const SharedMemory& reference) {
    return preparer.reference.Compute(tree, seed, inputs, reference);
  };
}

std::optional<Pipeline::Prepared> Pipeline::Prepare(Preparer& preparer, const wire::Lease& lease,
                                                    Evaluation& evaluation) {
  const auto fail = [&](Failure failure) {
    evaluation.verdict = std::move(failure);
    return std::nullopt;
  };
  const Instant start = parts_.clock.Now();
  const Preparations::UnderWay under_way(preparations_);
  std::optional<DutyCycle::Step> step(std::in_place, account_.duty(), DutyCycle::Stage::kCompile);
  const std::expected<looptree::Replayed, Failure> replayed =
      RebuildJob(lease.spec,
                 {.device = DeviceKind::kCpu,
                  .max_threads = options_.max_threads,
                  .max_tensor_bytes = options_.max_tensor_bytes},
                 evaluation);
  if (!replayed) return fail(replayed.error());
  const Instant rebuilt = parts_.clock.Now();
  evaluation.stages[Stage::kReplay] = rebuilt - start;

  CodeArena::Place code = parts_.code.Take();
  const std::expected<CompiledKernel, Failure> compiled =
      preparer.compiler.Compile(replayed->tree, code, {.threads = lease.spec.threads});
  const Instant compiled_at = parts_.clock.Now();
  evaluation.stages[Stage::kCompile] = compiled_at - rebuilt;
  if (!compiled) return fail(compiled.error());
  step.emplace(account_.duty(), DutyCycle::Stage::kVerify);
  const Kernel& kernel = compiled->kernel;
  evaluation.scratch_bytes = kernel.scratch_bytes;
  evaluation.notes = kernel.notes;
  evaluation.code_hash = CodeHash(kernel.object);
  if (auto known = measured_.Find(replayed->tree.program(), lease.spec, evaluation, compiled_at)) {
    evaluation.verdict = *std::move(known);
    evaluation.same_code = true;
    return std::nullopt;
  }
  std::optional<CodeLookups::Question> question;
  if (lease.spec.freshness == Freshness::kAllowStored) {
    question.emplace(code_lookups_, lease.lease, evaluation.code_hash);
    on_output_();
  }

  std::uint64_t output_bytes = 0;
  for (const BufferSpec& buffer : kernel.buffers) {
    if (buffer.role == BufferSpec::Role::kOutput) {
      output_bytes += buffer.element_count * sizeof(float);
    }
  }

  std::expected<KernelCall, Failure> made = CallFor(preparer, replayed->tree, *compiled, code);
  if (!made) return fail(std::move(made).error());
  KernelCall call = *std::move(made);
  const std::expected<Verified, Failure> verified = Verify(preparer, call);
  const Instant done = parts_.clock.Now();
  evaluation.stages[Stage::kVerify] = done - compiled_at;
  if (!verified) return fail(verified.error());
  if (auto stored = question ? AwaitStored(*question, lease.spec, evaluation) : std::nullopt) {
    evaluation.verdict = *std::move(stored);
    evaluation.same_code = true;
    return std::nullopt;
  }
  // It was right on whole numbers; it is timed on fractions, and has to be right on them, too.
  if (auto fractions = workloads_.GetFractions(replayed->tree, MakerFor(preparer))) {
    call.workload = std::move(fractions);
  }
  const Instant ready = parts_.clock.Now();
  evaluation.stages[Stage::kVerify] = ready - compiled_at;
  return Prepared{.lease = lease.lease,
                  .job = lease.job,
                  .evaluation = std::move(evaluation),
                  .code = std::move(code),
                  .spec = lease.spec,
                  .output_bytes = output_bytes,
                  .call = std::move(call),
                  .run_took = verified->run_took,
                  .waits_since = ready,
                  .rounds = MeasurementRounds(
                      lease.spec, {.moments_apart = parts_.device.moments_apart(),
                                   .estimated_run_ns = verified->run_ns,
                                   .expects_long_runs = verified->run_took >= kFirstWait})};
}

std::optional<Measurement> Pipeline::AwaitStored(CodeLookups::Question& question,
                                                 const JobSpec& spec,
                                                 const Evaluation& evaluation) const {
  const std::optional<Evaluation> stored = question.Await(options_.lookup_patience);
  if (!stored || !stored->conditions) return std::nullopt;
  const double reference_mhz = stored->conditions->hardware.clock_mhz;
  if (!AnswersJob(stored->measurement(), reference_mhz, spec, evaluation)) return std::nullopt;
  return stored->measurement();
}

std::expected<std::shared_ptr<GuardedBuffers>, Failure> Pipeline::GuardedBuffersFor(
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

std::expected<Pipeline::Verified, Failure> Pipeline::Verify(Preparer& preparer,
                                                            const KernelCall& call) {
  for (;;) {
    call.arena->Poison();
    std::expected<Nanos, Failure> took = preparer.verifier.Run(call);
    std::expected<void, Failure> verified;
    if (!took) {
      verified = std::unexpected(took.error());
    } else {
      verified = call.arena->Check(call.workload->expected);
    }
    if (verified) {
      Verified found{.run_took = *took};
      // For a longer kernel a repetition is one run, or the sampler finds the number at once.
      constexpr Nanos kLong = std::chrono::microseconds(300);
      if (*took < kLong) found.run_ns = preparer.verifier.FindRunNs(call).value_or(0);
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

std::optional<Pipeline::Prepared> Pipeline::NextForSlot(Patience patience) {
  if (patience == Patience::kWait) account_.duty().SlotDoes(std::nullopt);
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
        first = std::ranges::min_element(
            again_, {}, [](const auto& entry) { return entry.second.waits_since; });
        due = std::min(due, first->second.waits_since + kFirstWait);
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

void Pipeline::RunCanariesIfDue() {
  DeviceHealth& device = parts_.device;
  if (!device.CanaryIsDue(parts_.clock.Now())) return;
  account_.duty().SlotDoes(Activity::kWait);  // for other workers of this host to free the core
  if (parts_.slot.TakeCore()) {
    account_.duty().SlotDoes(Activity::kCanary);
    const auto reading = parts_.slot.RunCanaries(device.hardware(), device.probe_steps());
    device.ObserveCanary(reading, parts_.clock.Now());
  }
  account_.duty().SlotDoes(std::nullopt);
  parts_.metrics.SetCanaryRatio(device.health().ratio);
}

void Pipeline::FillSlot(std::deque<Prepared>& on_slot) {
  while (parts_.slot.HasRoom()) {
    // Canaries and turns need the slot to themselves: until they have run, no new kernel starts.
    const bool is_reserved = parts_.device.CanaryIsDue(parts_.clock.Now()) || !turns_.is_empty();
    if (!on_slot.empty() && is_reserved) return;
    std::optional<Prepared> next = NextForSlot(on_slot.empty() ? Patience::kWait : Patience::kNow);
    if (!next) return;
    if (!leases_.Start(next->lease)) continue;
    Evaluation& evaluation = next->evaluation;
    evaluation.stages[Stage::kQueue] += parts_.clock.Now() - next->waits_since;
    if (on_slot.empty())
      account_.duty().SlotDoes(Activity::kWait);  // for other workers of this host to free the core
    next->begun_at = preparations_.Now();
    const auto begun =
        parts_.slot.Begin(next->call, parts_.device.PolicyFor(next->rounds), next->run_took);
    if (begun) {
      account_.duty().SlotDoes(Activity::kMeasure);
      on_slot.push_back(*std::move(next));
    } else {
      evaluation.verdict = begun.error();
      Finish(next->lease, next->job, std::move(evaluation));
    }
  }
}

std::expected<std::optional<Nanos>, Failure> Pipeline::AddRound(Prepared& done, Timed timed) {
  // Before the second round, and after each later one, everything the kernel writes is poisoned.
  // The output is thus known to be right after timing.
  if (!done.rounds.is_empty()) LF_TRY_VOID(parts_.slot.Check(done.call, done.evaluation.stages));
  if (preparations_.WereAnySince(done.begun_at)) done.had_all_cores = false;
  done.outside += timed.outside;
  const Samples& samples = timed.samples;
  const auto accepted =
      static_cast<std::uint64_t>(std::ranges::count(samples.flags, std::uint8_t{kSampleAccepted}));
  parts_.metrics.SamplesTaken(accepted, samples.ns.size() - accepted);
  constexpr double kHertzPerMhz = 1e6;
  parts_.metrics.SetClock(samples.clock_after_mhz * kHertzPerMhz);
  parts_.device.Observe(samples);
  done.rounds.Add(std::move(timed.samples), done.evaluation.conditions->hardware.clock_mhz);
  return done.rounds.NextIn();
}

std::expected<Measurement, Failure> Pipeline::Judge(const Prepared& done) const {
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

void Pipeline::TimeLoop() {
  std::deque<Prepared> on_slot;
  for (FillSlot(on_slot); !on_slot.empty(); FillSlot(on_slot)) {
    Prepared done = std::move(on_slot.front());
    on_slot.pop_front();
    Evaluation& evaluation = done.evaluation;
    std::expected<Timed, Failure> timed = parts_.slot.Finish(evaluation.stages);
    account_.duty().KernelCameOff();
    // The slot is kept busy while this result is judged.
    if (on_slot.empty()) {
      account_.duty().SlotDoes(Activity::kVerify);
    } else {
      FillSlot(on_slot);
    }
    const std::expected<std::optional<Nanos>, Failure> next_in =
        timed ? AddRound(done, *std::move(timed)) : std::unexpected(timed.error());
    if (next_in && *next_in) {
      account_.duty().KernelWasJudged(DutyCycle::Worth::kFigure);  // this round will be part of one
      done.call.arena->Poison();
      done.waits_since = parts_.clock.Now();
      again_.emplace(done.waits_since + **next_in, std::move(done));
      continue;
    }
    if (!next_in) {
      evaluation.verdict = next_in.error();
    } else if (auto measured = Judge(done)) {
      evaluation.verdict = *std::move(measured);
      HardwareFacts& hardware = evaluation.conditions->hardware;
      hardware = parts_.device.WithObservedPeaks(std::move(hardware));
      measured_.Add(done.call.workload->program, done.spec, evaluation, parts_.clock.Now());
    } else {
      evaluation.verdict = std::move(measured).error();
    }
    account_.ShowWorth(evaluation);
    Finish(done.lease, done.job, std::move(evaluation));
  }
  // A preparing thread may be waiting for their code space or their memory.
  again_.clear();
  while (prepared_.TryPop()) {
  }
  while (std::optional<Turn> turn = turns_.TryPop()) turn->drop();
}

void Pipeline::Finish(LeaseId lease, JobId job, Evaluation evaluation) {
  Count(evaluation);
  if (!evaluation.ok()) {
    log::Info("job.failed job={} lease={} code={} message=\"{}\"", job, lease,
              OutcomeLabel(evaluation), evaluation.failure().message);
  }
  const bool is_wanted =
      leases_.Finish({.lease = lease, .job = job, .evaluation = std::move(evaluation)});
  account_.ShowHeld();
  if (is_wanted) {
    on_output_();
  }
}

void Pipeline::Count(const Evaluation& evaluation) {
  parts_.metrics.JobCompleted(OutcomeLabel(evaluation));
  for (const Stage stage : {Stage::kReplay, Stage::kCompile, Stage::kVerify, Stage::kMeasure}) {
    const Nanos took = evaluation.stages[stage];
    if (took > Nanos{0}) parts_.metrics.StageTook(StageName(stage), took);
  }
}

}  // namespace loopfleet::worker
