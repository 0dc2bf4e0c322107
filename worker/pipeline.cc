#include "worker/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/looptree/key.h"
#include "worker/code_hash.h"

namespace loopfleet::worker {
namespace {

std::optional<Failure> WrongDevice(const JobSpec& spec, const looptree::Benchmark& benchmark) {
  if (PlacementOf(spec.device, benchmark.target) != Placement::kCuda) return std::nullopt;
  return Failure{.code = FailureCode::kNoMatchingWorker,
                 .message = "the job asks for a CUDA device; this worker has a CPU only"};
}

}  // namespace

Pipeline::Pipeline(const Options& options, const Parts& parts, Conditions conditions,
                   std::function<void()> on_finished)
    : options_(options),
      parts_(parts),
      conditions_(std::move(conditions)),
      on_finished_(std::move(on_finished)),
      workloads_(options.workloads),
      arenas_(options.arenas),
      prepared_(options.max_prepared),
      time_thread_([this] { TimeLoop(); }) {
  for (Preparer& preparer : parts_.preparers) {
    prepare_threads_.emplace_back([this, &preparer] { PrepareLoop(preparer); });
  }
}

Pipeline::~Pipeline() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting_.clear();
    held_.clear();
    changed_.notify_all();
  }
  parts_.slot.Stop();
  prepared_.Close();
  for (std::thread& thread : prepare_threads_) thread.join();
  time_thread_.join();
}

bool Pipeline::Accept(wire::Lease lease) {
  std::lock_guard lock(mutex_);
  if (held_.size() >= options_.max_held) return false;
  if (!held_.emplace(lease.lease, lease.job).second) return true;  // sent twice: it is under way
  waiting_.push_back({std::move(lease), parts_.clock.Now()});
  changed_.notify_all();
  return true;
}

void Pipeline::Drop(std::span<const LeaseId> leases) {
  std::lock_guard lock(mutex_);
  for (const LeaseId lease : leases) {
    held_.erase(lease);
    std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.lease.lease == lease; });
    std::erase_if(finished_, [&](const wire::Report& report) { return report.lease == lease; });
  }
}

std::vector<LeaseId> Pipeline::DropUnstarted() {
  std::lock_guard lock(mutex_);
  waiting_.clear();
  std::vector<LeaseId> dropped;
  for (const auto& [lease, job] : held_) {
    const bool is_finished = std::any_of(finished_.begin(), finished_.end(),
                                         [&](const auto& report) { return report.lease == lease; });
    if (!on_slot_.contains(lease) && !is_finished) dropped.push_back(lease);
  }
  for (const LeaseId lease : dropped) held_.erase(lease);
  return dropped;
}

std::vector<LeaseId> Pipeline::GiveBack(std::span<const LeaseId> leases) {
  std::lock_guard lock(mutex_);
  std::vector<LeaseId> dropped;
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    const LeaseId lease = waiting.lease.lease;
    if (std::ranges::find(leases, lease) == leases.end() || held_.erase(lease) == 0) return false;
    dropped.push_back(lease);
    return true;
  });
  return dropped;
}

std::vector<wire::Report> Pipeline::TakeFinished() {
  std::lock_guard lock(mutex_);
  for (const wire::Report& report : finished_) held_.erase(report.lease);
  return std::exchange(finished_, {});
}

std::vector<wire::HeldLease> Pipeline::Held() const {
  std::lock_guard lock(mutex_);
  std::vector<wire::HeldLease> held;
  for (const auto& [lease, job] : held_) held.push_back({.lease = lease, .job = job});
  return held;
}

bool Pipeline::IsHeld(LeaseId lease) const {
  std::lock_guard lock(mutex_);
  return held_.contains(lease);
}

std::optional<Pipeline::Waiting> Pipeline::NextWaiting() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
  if (stopping_) return std::nullopt;
  Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  return next;
}

void Pipeline::PrepareLoop(Preparer& preparer) {
  while (std::optional<Waiting> next = NextWaiting()) {
    Evaluation evaluation;
    evaluation.conditions = conditions_;
    evaluation.conditions->hardware =
        parts_.device.hardware();  // the reference clock may have come
    evaluation.stages[Stage::kQueue] = parts_.clock.Now() - next->accepted_at;
    std::optional<Prepared> prepared = Prepare(preparer, next->lease, evaluation);
    if (!prepared) {
      Finish(next->lease.lease, next->lease.job, std::move(evaluation));
    } else if (IsHeld(prepared->lease)) {
      prepared_.Push(*std::move(prepared));
    }
  }
}

std::optional<Pipeline::Prepared> Pipeline::Prepare(Preparer& preparer, const wire::Lease& lease,
                                                    Evaluation& evaluation) {
  const auto fail = [&](Failure failure) {
    evaluation.verdict = std::move(failure);
    return std::nullopt;
  };
  const Instant start = parts_.clock.Now();
  if (std::optional<Failure> failure = SenselessField(lease.spec)) return fail(*failure);
  if (lease.spec.threads > options_.max_threads) {
    return fail(
        {.code = FailureCode::kNoMatchingWorker,
         .message = fmt::format("the job asks for {} threads; this worker gives a kernel {}",
                                lease.spec.threads, options_.max_threads)});
  }
  evaluation.conditions->threads = lease.spec.threads;
  evaluation.conditions->cache = lease.spec.cache;
  const std::expected<looptree::Replayed, Failure> replayed = ReplayJob(lease.spec);
  if (!replayed) return fail(replayed.error());
  evaluation.tree_key = looptree::KeyOf(replayed->tree);
  evaluation.flop_count = looptree::FlopCount(replayed->tree.program());
  if (std::optional<Failure> failure = WrongDevice(lease.spec, replayed->benchmark)) {
    return fail(*std::move(failure));
  }
  if (const std::uint64_t bytes = looptree::TensorBytes(replayed->tree.program());
      bytes > options_.max_tensor_bytes) {
    return fail({.code = FailureCode::kRunOom,
                 .message = fmt::format("inputs and outputs take {} bytes, this worker allows {}",
                                        bytes, options_.max_tensor_bytes)});
  }
  if (evaluation.flop_count > options_.max_flop_count) {
    return fail({.code = FailureCode::kLimitFlops,
                 .message = fmt::format("one run is {} flop; this worker verifies outputs, and so"
                                        " takes jobs, up to {}",
                                        evaluation.flop_count, options_.max_flop_count)});
  }
  const Instant rebuilt = parts_.clock.Now();
  evaluation.stages[Stage::kReplay] = rebuilt - start;

  CodeArena::Place code = parts_.code.Take();
  const std::expected<CompiledKernel, Failure> compiled =
      preparer.compiler.Compile(replayed->tree, code, {.threads = lease.spec.threads});
  const Instant compiled_at = parts_.clock.Now();
  evaluation.stages[Stage::kCompile] = compiled_at - rebuilt;
  if (!compiled) return fail(compiled.error());
  const Kernel& kernel = compiled->kernel;
  evaluation.scratch_bytes = kernel.scratch_bytes;
  evaluation.no_effect = kernel.no_effect;
  evaluation.code_hash = CodeHash(kernel.object);

  std::uint64_t output_bytes = 0;
  for (const BufferSpec& buffer : kernel.buffers) {
    if (buffer.role == BufferSpec::Role::kOutput) {
      output_bytes += buffer.element_count * sizeof(float);
    }
  }

  const Result<std::uint64_t> entry = code.Write(compiled->code);
  if (!entry) return fail({.code = FailureCode::kCompileError, .message = entry.error().message});
  auto workload = workloads_.Get(
      replayed->tree, [&](const auto& tree, std::uint64_t seed, const SharedMemory& inputs,
                          const SharedMemory& reference) {
        return preparer.reference.Compute(tree, seed, inputs, reference);
      });
  if (!workload) return fail(std::move(workload).error());
  auto arena = ArenaFor(kernel, **workload);
  if (!arena) return fail(std::move(arena).error());
  KernelCall call{.entry = *entry, .workload = *std::move(workload), .arena = *std::move(arena)};
  const std::expected<Nanos, Failure> ran = Verify(preparer, call);
  const Instant done = parts_.clock.Now();
  evaluation.stages[Stage::kVerify] = done - compiled_at;
  if (!ran) return fail(ran.error());
  return Prepared{.lease = lease.lease,
                  .job = lease.job,
                  .evaluation = std::move(evaluation),
                  .code = std::move(code),
                  .spec = lease.spec,
                  .output_bytes = output_bytes,
                  .call = std::move(call),
                  .run_took = *ran,
                  .waits_since = done,
                  .looks = Looks(lease.spec, {})};
}

std::expected<std::shared_ptr<Arena>, Failure> Pipeline::ArenaFor(const Kernel& kernel,
                                                                  const Workload& workload) {
  std::vector<std::uint64_t> counts;
  std::uint64_t elements = 0;
  for (const BufferSpec& buffer : kernel.buffers) {
    if (buffer.role == BufferSpec::Role::kInput) continue;
    counts.push_back(buffer.element_count);
    elements += buffer.element_count;  // CheckBuffers bounded the sum
  }
  if (elements > options_.max_written_bytes / sizeof(float)) {
    return std::unexpected(
        Failure{.code = FailureCode::kLimitFootprint,
                .message = fmt::format("outputs and scratch need {} bytes, the limit is {}",
                                       elements * sizeof(float), options_.max_written_bytes)});
  }
  auto arena = arenas_.Take(LayOut(counts, workload.layout.buffers.size()));
  if (arena) return *std::move(arena);
  return std::unexpected(Failure{.code = FailureCode::kRunOom, .message = arena.error().message});
}

std::expected<Nanos, Failure> Pipeline::Verify(Preparer& preparer, const KernelCall& call) {
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
      call.arena->Poison();  // what is right now must not pass for what is computed on the slot
      return took;
    }
    // Kernels that ran in that child before may have damaged it. (None makes others hang.)
    if (preparer.verifier.ran_in_new_child() || verified.error().code == FailureCode::kRunTimeout) {
      return std::unexpected(std::move(verified).error());
    }
    preparer.verifier.Renew();
  }
}

bool Pipeline::StartTiming(LeaseId lease) {
  std::lock_guard lock(mutex_);
  if (!held_.contains(lease)) {
    on_slot_.erase(lease);  // dropped between two looks
    return false;
  }
  on_slot_.insert(lease);
  return true;
}

std::optional<Pipeline::Prepared> Pipeline::NextForSlot(Patience patience) {
  for (;;) {
    if (patience == Patience::kWait) RunCanariesIfDue();
    const Instant now = parts_.clock.Now();
    Nanos wait = options_.idle_wait;
    if (!again_.empty()) {
      const auto first = again_.begin();
      if (first->first <= now) {
        Prepared next = std::move(first->second);
        again_.erase(first);
        return next;
      }
      wait = std::min(wait, first->first - now);
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
  DeviceWatch& device = parts_.device;
  if (!device.CanaryIsDue(parts_.clock.Now())) return;
  device.ObserveCanary(parts_.slot.RunCanaries(device.hardware(), device.probe_steps()),
                       parts_.clock.Now());
  parts_.metrics.SetCanaryRatio(device.health().ratio);
}

void Pipeline::FillSlot(std::deque<Prepared>& on_slot) {
  while (parts_.slot.HasRoom()) {
    // Canaries need the slot to themselves: once they are due, it runs empty.
    if (!on_slot.empty() && parts_.device.CanaryIsDue(parts_.clock.Now())) return;
    std::optional<Prepared> next = NextForSlot(on_slot.empty() ? Patience::kWait : Patience::kNow);
    if (!next) return;
    if (!StartTiming(next->lease)) continue;
    Evaluation& evaluation = next->evaluation;
    evaluation.stages[Stage::kQueue] += parts_.clock.Now() - next->waits_since;
    const auto begun =
        parts_.slot.Begin(next->call, parts_.device.PolicyFor(next->looks), next->run_took);
    if (begun) {
      on_slot.push_back(*std::move(next));
    } else {
      evaluation.verdict = begun.error();
      Finish(next->lease, next->job, std::move(evaluation));
    }
  }
}

std::expected<std::optional<Nanos>, Failure> Pipeline::TakeLook(Prepared& done, Timed timed) {
  // Before the second look, and each after it, everything that the kernel writes is poisoned: it is
  // then known to be right after it has been timed.
  if (!done.looks.is_empty()) LF_TRY_VOID(parts_.slot.Check(done.call, done.evaluation.stages));
  done.outside += Nanos(timed.outside_ns);
  done.handover += Nanos(timed.handover_ns);
  const Samples& samples = timed.samples;
  const auto accepted =
      static_cast<std::uint64_t>(std::ranges::count(samples.flags, std::uint8_t{kSampleAccepted}));
  parts_.metrics.SamplesTaken(accepted, samples.ns.size() - accepted);
  constexpr double kHertzPerMhz = 1e6;
  parts_.metrics.SetClock(samples.clock_after_mhz * kHertzPerMhz);
  parts_.device.Observe(samples);
  done.looks.Add(std::move(timed.samples));
  return done.looks.NextIn();
}

std::expected<Measurement, Failure> Pipeline::Judge(const Prepared& done) const {
  parts_.metrics.StageTook(kSlotOverheadLabel, done.outside);
  parts_.metrics.StageTook(kSlotHandoverLabel, done.handover);
  return parts_.device.Judge(done.looks, done.spec,
                             {.flop_count = done.evaluation.flop_count,
                              .output_bytes = done.output_bytes,
                              .threads = done.spec.threads},
                             done.evaluation.conditions->hardware);
}

void Pipeline::TimeLoop() {
  std::deque<Prepared> on_slot;
  for (FillSlot(on_slot); !on_slot.empty(); FillSlot(on_slot)) {
    Prepared done = std::move(on_slot.front());
    on_slot.pop_front();
    Evaluation& evaluation = done.evaluation;
    std::expected<Timed, Failure> timed = parts_.slot.Finish(evaluation.stages);
    // The core is not to wait while this result is looked at.
    if (!on_slot.empty()) FillSlot(on_slot);
    const std::expected<std::optional<Nanos>, Failure> next_in =
        timed ? TakeLook(done, *std::move(timed)) : std::unexpected(timed.error());
    if (next_in && *next_in) {
      done.call.arena->Poison();
      done.waits_since = parts_.clock.Now();
      again_.emplace(done.waits_since + **next_in, std::move(done));
      continue;
    }
    if (!next_in) {
      evaluation.verdict = next_in.error();
    } else if (auto measured = Judge(done)) {
      evaluation.verdict = *std::move(measured);
    } else {
      evaluation.verdict = std::move(measured).error();
    }
    Finish(done.lease, done.job, std::move(evaluation));
  }
  again_.clear();  // a preparing thread may wait for the place of their code
}

void Pipeline::Finish(LeaseId lease, JobId job, Evaluation evaluation) {
  Count(evaluation);
  if (!evaluation.ok()) {
    log::Info("job.failed job={} lease={} code={} message=\"{}\"", job, lease,
              OutcomeLabel(evaluation), evaluation.failure().message);
  }
  {
    std::lock_guard lock(mutex_);
    on_slot_.erase(lease);
    if (!held_.contains(lease)) return;  // dropped meanwhile: nobody wants it
    finished_.push_back({.lease = lease, .job = job, .evaluation = std::move(evaluation)});
  }
  on_finished_();
}

void Pipeline::Count(const Evaluation& evaluation) {
  parts_.metrics.JobCompleted(OutcomeLabel(evaluation));
  for (const Stage stage : {Stage::kReplay, Stage::kCompile, Stage::kVerify, Stage::kMeasure}) {
    const Nanos took = evaluation.stages[stage];
    if (took > Nanos{0}) parts_.metrics.StageTook(StageName(stage), took);
  }
}

}  // namespace loopfleet::worker
