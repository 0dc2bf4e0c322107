#include "worker/gpu/device/gpu_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "worker/backend/code_hash.h"
#include "worker/evaluation/job_rebuild.h"

namespace loopfleet::worker {
namespace {

std::uint64_t BytesOf(const std::vector<BufferSpec>& specs, BufferSpec::Role role) {
  std::uint64_t elements = 0;
  for (const BufferSpec& spec : specs) {
    if (spec.role == role) elements += spec.element_count;  // CheckBuffers bounded the sum
  }
  return elements * sizeof(float);
}

}  // namespace

GpuPipeline::GpuPipeline(const Options& options, const Parts& parts, Conditions conditions,
                         std::function<void()> on_finished)
    : options_(options),
      parts_(parts),
      conditions_(std::move(conditions)),
      on_finished_(std::move(on_finished)),
      leases_(options.max_held),
      account_(leases_, parts.metrics, parts.clock),
      workloads_(options.workloads),
      arenas_(options.arenas),
      prepared_(options.max_prepared),
      device_thread_([this] { DeviceLoop(); }) {
  for (Preparer& preparer : parts_.preparers) {
    prepare_threads_.emplace_back([this, &preparer] { PrepareLoop(preparer); });
  }
}

GpuPipeline::~GpuPipeline() {
  leases_.Stop();
  prepared_.Close();
  for (std::thread& thread : prepare_threads_) thread.join();
  device_thread_.join();
}

bool GpuPipeline::Accept(wire::Lease lease) {
  const bool accepted = leases_.Accept(std::move(lease), parts_.clock.Now());
  account_.ShowHeld();
  return accepted;
}
void GpuPipeline::Drop(std::span<const LeaseId> leases) {
  leases_.Drop(leases);
  account_.ShowHeld();
}
std::vector<LeaseId> GpuPipeline::DropUnstarted() {
  std::vector<LeaseId> dropped = leases_.DropUnstarted();
  account_.ShowHeld();
  return dropped;
}
std::vector<LeaseId> GpuPipeline::GiveBack(std::span<const LeaseId> leases) {
  std::vector<LeaseId> dropped = leases_.GiveBack(leases);
  account_.ShowHeld();
  return dropped;
}
std::vector<wire::Report> GpuPipeline::TakeFinished() { return leases_.TakeFinished(); }
std::vector<wire::HeldLease> GpuPipeline::Held() const { return leases_.Held(); }

void GpuPipeline::PrepareLoop(Preparer& preparer) {
  while (std::optional<LeaseBook::Waiting> next = leases_.Next()) {
    Evaluation evaluation;
    evaluation.conditions = conditions_;
    evaluation.stages[Stage::kQueue] = parts_.clock.Now() - next->accepted_at;
    std::optional<Prepared> prepared = Prepare(preparer, next->lease, evaluation);
    if (!prepared) {
      Finish(next->lease.lease, next->lease.job, std::move(evaluation));
    } else if (leases_.IsHeld(prepared->lease)) {
      prepared_.Push(*std::move(prepared));
    }
  }
}

std::optional<GpuPipeline::Prepared> GpuPipeline::Prepare(Preparer& preparer,
                                                          const wire::Lease& lease,
                                                          Evaluation& evaluation) {
  const auto fail = [&](Failure failure) {
    evaluation.verdict = std::move(failure);
    return std::nullopt;
  };
  const Instant start = parts_.clock.Now();
  std::optional<DutyCycle::Step> step(std::in_place, account_.duty(), DutyCycle::Stage::kCompile);
  const std::expected<looptree::Replayed, Failure> replayed =
      RebuildJob(lease.spec,
                 {.device = DeviceKind::kCuda,
                  .max_threads = 1,
                  .max_tensor_bytes = options_.max_tensor_bytes},
                 evaluation);
  if (!replayed) return fail(replayed.error());
  const Instant rebuilt = parts_.clock.Now();
  evaluation.stages[Stage::kReplay] = rebuilt - start;

  std::expected<CompiledKernel, Failure> compiled =
      preparer.compiler.Compile(replayed->tree, options_.max_code_bytes);
  const Instant compiled_at = parts_.clock.Now();
  evaluation.stages[Stage::kCompile] = compiled_at - rebuilt;
  if (!compiled) return fail(std::move(compiled).error());
  step.emplace(account_.duty(), DutyCycle::Stage::kVerify);
  const Kernel& kernel = compiled->kernel;
  evaluation.scratch_bytes = kernel.scratch_bytes;
  evaluation.notes = kernel.notes;
  evaluation.code_hash = CodeHash(kernel.object);
  if (const std::uint64_t scratch = BytesOf(kernel.buffers, BufferSpec::Role::kScratch);
      scratch > options_.max_scratch_bytes) {
    return fail({.code = FailureCode::kRunOom,
                 .message = fmt::format("scratch needs {} bytes, this worker allows {}", scratch,
                                        options_.max_scratch_bytes)});
  }
  auto workload = workloads_.Get(replayed->tree,
                                 [&](const auto& tree, InputSeed seed, const SharedMemory& inputs,
                                     const SharedMemory& reference) {
                                   return preparer.reference.Compute(tree, seed, inputs, reference);
                                 });
  if (!workload) return fail(std::move(workload).error());
  std::vector<std::uint64_t> outputs;
  for (const BufferSpec& spec : kernel.buffers) {
    if (spec.role == BufferSpec::Role::kOutput) outputs.push_back(spec.element_count);
  }
  auto arena = arenas_.Take(LayOut(outputs, (*workload)->layout.buffers.size()));
  if (!arena) {
    return fail({.code = FailureCode::kRunOom, .message = std::move(arena).error().message});
  }
  const Instant done = parts_.clock.Now();
  evaluation.stages[Stage::kVerify] = done - compiled_at;
  return Prepared{.lease = lease.lease,
                  .job = lease.job,
                  .evaluation = std::move(evaluation),
                  .spec = lease.spec,
                  .call = {.image = std::move(compiled->code.bytes),
                           .specs = kernel.buffers,
                           .workload = *std::move(workload),
                           .arena = *std::move(arena)},
                  .prepared_at = done};
}

// A cosmic ray or a kernel may cause a single fault. Several in a row without a success between
// them are the device's.
void GpuPipeline::NoteFault(const Failure& failure) {
  ++faults_;
  log::Warning("device.fault unrolled_steps={} message=\"{}\"", faults_, failure.message);
  if (faults_ >= options_.most_faults) {
    const std::string reason =
        fmt::format("the device failed {} times in a row, at last: {}", faults_, failure.message);
    log::Error("device.retired reason=\"{}\"", reason);
    parts_.retirement.Retire(reason);
  }
}

bool GpuPipeline::AwaitDevice() {
  while (!prepared_.is_closed() && !parts_.retirement.reason()) {
    const auto ready = parts_.device.EnsureReady();
    if (ready) return true;
    NoteFault(ready.error());
    if (!parts_.retirement.reason()) std::this_thread::sleep_for(options_.after_fault);
  }
  return false;
}

void GpuPipeline::DeviceLoop() {
  // Jobs still waiting when the device is given up stay unstarted, so that the drain returns them.
  while (std::optional<Prepared> next = prepared_.Pop()) {
    if (!AwaitDevice()) continue;
    if (!leases_.Start(next->lease)) continue;
    Evaluation& evaluation = next->evaluation;
    evaluation.stages[Stage::kQueue] += parts_.clock.Now() - next->prepared_at;
    std::expected<Measurement, Failure> measured = Measure(*next);
    account_.duty().KernelCameOff();
    account_.duty().SlotDoes(std::nullopt);
    if (measured) {
      faults_ = 0;
      evaluation.verdict = *std::move(measured);
    } else {
      if (measured.error().code == FailureCode::kDeviceFault) NoteFault(measured.error());
      evaluation.verdict = std::move(measured).error();
    }
    account_.ShowWorth(evaluation);
    Finish(next->lease, next->job, std::move(evaluation));
  }
}

std::expected<Measurement, Failure> GpuPipeline::Measure(Prepared& prepared) {
  StageDurations& stages = prepared.evaluation.stages;
  const GuardedBuffers& arena = *prepared.call.arena;
  const Instant start = parts_.clock.Now();
  account_.duty().SlotDoes(Activity::kVerify);
  prepared.call.arena->Poison();
  const auto ran = parts_.device.Run(prepared.call);
  std::expected<void, Failure> verified;
  if (ran) verified = arena.Check(prepared.call.workload->expected);
  const Instant begun = parts_.clock.Now();
  stages[Stage::kVerify] += begun - start;
  if (!ran) return std::unexpected(ran.error());
  if (!verified) return std::unexpected(std::move(verified).error());

  prepared.call.arena->Poison();  // so that outputs of the first run cannot pass the second check
  account_.duty().SlotDoes(Activity::kMeasure);
  const auto samples = parts_.device.Time(GpuPolicyFor(prepared.spec), *ran);
  const Instant timed = parts_.clock.Now();
  account_.duty().SlotDoes(Activity::kVerify);
  stages[Stage::kMeasure] += timed - begun;
  if (!samples) return std::unexpected(samples.error());
  verified = arena.Check(prepared.call.workload->expected);
  stages[Stage::kVerify] += parts_.clock.Now() - timed;
  if (!verified) return std::unexpected(std::move(verified).error());

  const Samples& taken = samples->samples;
  const auto accepted =
      static_cast<std::uint64_t>(std::ranges::count(taken.flags, std::uint8_t{kSampleAccepted}));
  parts_.metrics.SamplesTaken(accepted, taken.ns.size() - accepted);
  constexpr double kHertzPerMhz = 1e6;
  parts_.metrics.SetClock(taken.clock_after_mhz * kHertzPerMhz);
  if (samples->after.clock_mhz > 0) {  // 0: no sensors
    parts_.metrics.SetHostClock(samples->after.clock_mhz * kHertzPerMhz);
    parts_.metrics.SetTemperature(samples->after.temperature_c);
  }
  if (samples->throttled > 0) {
    log::Info("device.throttled job={} samples={} of={} reasons=\"{}\" temperature_c={} power_w={}",
              prepared.job, samples->throttled, taken.ns.size(),
              ThrottleText(samples->after.throttle_reasons), samples->after.temperature_c,
              samples->after.power_w);
  }
  if (samples->was_shared) {
    log::Warning("device.shared job={} message=\"another process has a context on the device\"",
                 prepared.job);
  }
  return JudgeSamples(*samples, prepared.spec,
                      {.flop_count = prepared.evaluation.flop_count,
                       .output_bytes = BytesOf(prepared.call.specs, BufferSpec::Role::kOutput)},
                      prepared.evaluation.conditions->hardware, options_.truth);
}

void GpuPipeline::Finish(LeaseId lease, JobId job, Evaluation evaluation) {
  parts_.metrics.JobCompleted(OutcomeLabel(evaluation));
  for (const Stage stage : {Stage::kReplay, Stage::kCompile, Stage::kVerify, Stage::kMeasure}) {
    const Nanos took = evaluation.stages[stage];
    if (took > Nanos{0}) parts_.metrics.StageTook(StageName(stage), took);
  }
  if (!evaluation.ok()) {
    log::Info("job.failed job={} lease={} code={} message=\"{}\"", job, lease,
              OutcomeLabel(evaluation), evaluation.failure().message);
  }
  const bool is_wanted =
      leases_.Finish({.lease = lease, .job = job, .evaluation = std::move(evaluation)});
  account_.ShowHeld();
  if (is_wanted) on_finished_();
}

}  // namespace loopfleet::worker
