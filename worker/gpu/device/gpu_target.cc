#include "worker/gpu/device/gpu_target.h"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "common/base/log.h"
#include "worker/verification/buffer_layout.h"

namespace loopfleet::worker {
GpuTarget::GpuTarget(const Options& options, const Parts& parts, Conditions conditions,
                     LeaseDesk& desk)
    : options_(options),
      parts_(parts),
      conditions_(std::move(conditions)),
      desk_(desk),
      workloads_(options.workloads),
      arenas_(options.arenas),
      prepared_(options.max_prepared) {}

JobLimits GpuTarget::limits() const {
  return {
      .device = DeviceKind::kCuda, .max_threads = 1, .max_tensor_bytes = options_.max_tensor_bytes};
}

std::expected<GpuTarget::Compiled, Failure> GpuTarget::Compile(Preparer& preparer,
                                                               const looptree::LoopTree& tree,
                                                               const JobSpec&) {
  LF_TRY(CompiledKernel compiled, preparer.compiler.Compile(tree, options_.max_code_bytes));
  return Compiled{std::move(compiled)};
}

std::optional<GpuTarget::Prepared> GpuTarget::Prepare(Preparer& preparer, const CompiledJob& job,
                                                      Compiled compiled) {
  const auto fail = [&](Failure failure) {
    job.evaluation.verdict = std::move(failure);
    return std::nullopt;
  };
  const Kernel& kernel = compiled.compiled.kernel;
  if (const std::uint64_t scratch = BytesOf(kernel.buffers, BufferSpec::Role::kScratch);
      scratch > options_.max_scratch_bytes) {
    return fail({.code = FailureCode::kRunOom,
                 .message = fmt::format("scratch needs {} bytes, this worker allows {}", scratch,
                                        options_.max_scratch_bytes)});
  }
  auto workload = workloads_.Get(job.tree, preparer.reference.Maker());
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
  job.evaluation.stages[Stage::kVerify] = done - job.compiled_at;
  return Prepared{.lease = job.lease.lease,
                  .job = job.lease.job,
                  .evaluation = std::move(job.evaluation),
                  .spec = job.lease.spec,
                  .call = {.image = std::move(compiled.compiled.code.bytes),
                           .specs = kernel.buffers,
                           .workload = *std::move(workload),
                           .arena = *std::move(arena)},
                  .launch_roots = kernel.profile.launch_roots,
                  .prepared_at = done};
}

// A cosmic ray or a kernel may cause a single fault. Several in a row without a success between
// them are the device's.
void GpuTarget::NoteFault(const Failure& failure) {
  ++faults_;
  log::Warning("device.fault faults={} message=\"{}\"", faults_, failure.message);
  if (faults_ >= options_.most_faults) {
    const std::string reason =
        fmt::format("the device failed {} times in a row, at last: {}", faults_, failure.message);
    log::Error("device.retired reason=\"{}\"", reason);
    parts_.retirement.Retire(reason);
  }
}

bool GpuTarget::AwaitDevice() {
  while (!prepared_.is_closed() && !parts_.retirement.reason()) {
    const auto ready = parts_.device.EnsureReady();
    if (ready) return true;
    NoteFault(ready.error());
    if (!parts_.retirement.reason()) std::this_thread::sleep_for(options_.after_fault);
  }
  return false;
}

void GpuTarget::Measure() {
  // Jobs still waiting when the device is given up stay unstarted, so that the drain returns them.
  while (std::optional<Prepared> next = prepared_.Pop()) {
    if (!AwaitDevice()) continue;
    if (!desk_.Start(next->lease)) continue;
    Evaluation& evaluation = next->evaluation;
    evaluation.stages[Stage::kQueue] += parts_.clock.Now() - next->prepared_at;
    std::expected<Verdict, Failure> verdict = VerdictOn(*next);
    desk_.duty().KernelCameOff();
    desk_.duty().SlotDoes(std::nullopt);
    if (verdict) {
      faults_ = 0;
      evaluation.verdict = *std::move(verdict);
    } else {
      if (verdict.error().code == FailureCode::kDeviceFault) NoteFault(verdict.error());
      evaluation.verdict = std::move(verdict).error();
    }
    desk_.account().ShowWorth(evaluation);
    desk_.Finish(next->lease, next->job, std::move(evaluation));
  }
}

std::expected<GpuTarget::Verdict, Failure> GpuTarget::VerdictOn(Prepared& prepared) {
  if (prepared.spec.profile == ProfileLevel::kNone) {
    LF_TRY(Measurement measurement, MeasureOne(prepared));
    return measurement;
  }
  LF_TRY(const Profile profile, ProfileOne(prepared));
  return ToObserved(profile);
}

template <class Take>
std::invoke_result_t<Take, Nanos> GpuTarget::TakeVerified(Prepared& prepared, const Take& take) {
  StageDurations& stages = prepared.evaluation.stages;
  const GuardedBuffers& arena = *prepared.call.arena;
  const Instant start = parts_.clock.Now();
  desk_.duty().SlotDoes(Activity::kVerify);
  prepared.call.arena->Poison();
  const auto ran = parts_.device.Run(prepared.call);
  std::expected<void, Failure> verified;
  if (ran) verified = arena.Check(prepared.call.workload->expected);
  const Instant begun = parts_.clock.Now();
  stages[Stage::kVerify] += begun - start;
  if (!ran) return std::unexpected(ran.error());
  if (!verified) return std::unexpected(std::move(verified).error());

  prepared.call.arena->Poison();  // so that outputs of the first run cannot pass the second check
  desk_.duty().SlotDoes(Activity::kMeasure);
  auto taken = take(*ran);
  const Instant timed = parts_.clock.Now();
  desk_.duty().SlotDoes(Activity::kVerify);
  stages[Stage::kMeasure] += timed - begun;
  if (!taken) return taken;
  verified = arena.Check(prepared.call.workload->expected);
  stages[Stage::kVerify] += parts_.clock.Now() - timed;
  if (!verified) return std::unexpected(std::move(verified).error());
  return taken;
}

std::expected<Profile, Failure> GpuTarget::ProfileOne(Prepared& prepared) {
  LF_TRY(const LaunchTimes times, TakeVerified(prepared, [&](Nanos run_took) {
           return parts_.device.TimeLaunches(run_took);
         }));
  LF_TRY(Profile profile, ProfileOfLaunches(prepared.launch_roots, times));
  profile.code_hash = std::exchange(prepared.evaluation.code_hash, {});
  return profile;
}

std::expected<Measurement, Failure> GpuTarget::MeasureOne(Prepared& prepared) {
  LF_TRY(const DeviceSamples samples, TakeVerified(prepared, [&](Nanos run_took) {
           return parts_.device.Time(GpuPolicyFor(prepared.spec), run_took);
         }));
  const Samples& taken = samples.samples;
  desk_.CountSamples(taken);
  if (samples.after.clock_mhz > 0) {  // 0: no sensors
    constexpr double kHertzPerMhz = 1e6;
    parts_.metrics.SetHostClock(samples.after.clock_mhz * kHertzPerMhz);
    parts_.metrics.SetTemperature(samples.after.temperature_c);
  }
  if (samples.throttled > 0) {
    log::Info("device.throttled job={} samples={} of={} reasons=\"{}\" temperature_c={} power_w={}",
              prepared.job, samples.throttled, taken.ns.size(),
              ThrottleText(samples.after.throttle_reasons), samples.after.temperature_c,
              samples.after.power_w);
  }
  if (samples.was_shared) {
    log::Warning("device.shared job={} message=\"another process has a context on the device\"",
                 prepared.job);
  }
  return JudgeSamples(samples, prepared.spec,
                      {.flop_count = prepared.evaluation.flop_count,
                       .output_bytes = BytesOf(prepared.call.specs, BufferSpec::Role::kOutput)},
                      prepared.evaluation.conditions->hardware, options_.truth);
}

}  // namespace loopfleet::worker
