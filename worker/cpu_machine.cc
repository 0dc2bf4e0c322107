#include "worker/cpu_machine.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/job/job_spec.h"
#include "common/job/task.h"
#include "monitoring/host/core_plan.h"
#include "monitoring/host/host_inspection.h"
#include "monitoring/host/host_sensors.h"
#include "worker/evaluation/cpu_target.h"
#include "worker/evaluation/grade_limit.h"
#include "worker/evaluation/kind_router.h"
#include "worker/evaluation/memory_share.h"
#include "worker/host/hardware.h"
#include "worker/isa/isa_support.h"
#include "worker/isa/processor.h"
#include "worker/processes/executor_process.h"
#include "worker/processes/slot_lock.h"
#include "worker/processes/timing_slot.h"
#include "worker/sandbox/confinement.h"
#include "worker/verification/code_arena.h"

namespace loopfleet::worker {
namespace {

constexpr std::array kChildren = {ChildRole::kCompiler, ChildRole::kReference,
                                  ChildRole::kVerifier, ChildRole::kExecutor,
                                  ChildRole::kPasses,   ChildRole::kProfiler};

// Keeps the rest of this process and its children off the timing core.
Status LeaveTimingCore(const monitoring::CorePlan& cores) {
  if (cores.others.empty()) {
    log::Warning("worker.one_core message=\"kernels share their core with everything else\"");
    return {};
  }
  cpu_set_t others;
  CPU_ZERO(&others);
  for (const int core : cores.others) CPU_SET(static_cast<std::size_t>(core), &others);
  if (::sched_setaffinity(0, sizeof others, &others) != 0) {
    return Fail(ErrorKind::kSystem, "sched_setaffinity refused the cores of this process");
  }
  return {};
}

std::uint32_t PreparerCount(const WorkerConfig& config, const monitoring::CorePlan& cores) {
  // More than one slot needs. One more than there are cores, so that a job that compiles, verifies
  // or computes its reference for long does not keep the others from the slot.
  constexpr std::size_t kMost = 4;
  if (config.preparers > 0) return config.preparers;
  return static_cast<std::uint32_t>(std::min(cores.others.size() + 1, kMost));
}

// The clock as configured, else as measured, else as the host states it.
double ReferenceClock(const WorkerConfig& config, const DeviceReading& reading,
                      const HardwareFacts& hardware) {
  if (config.reference_clock_mhz > 0) return config.reference_clock_mhz;
  if (reading.clock_mhz > 0) return ReferenceMhz(reading.clock_mhz);
  return hardware.clock_mhz;
}

// Not a core that everything shares, nor where the work would use up rationed processor time.
bool MayKeepAwake(const monitoring::CorePlan& cores, const GradeLimit& limit) {
  return !cores.others.empty() &&
         std::ranges::find(limit.because, "cpu_quota") == limit.because.end();
}

class CpuMachine final : public Machine {
 public:
  CpuMachine(const WorkerConfig& config, const Backend& backend, const JobKinds& kinds)
      : config_(config), backend_(backend), kinds_(kinds) {}

  std::span<const ChildRole> children() const override { return kChildren; }
  Result<ChildPrograms> Inspect() override;
  Status Run(const Daemon& daemon) override;

 private:
  const WorkerConfig& config_;
  const Backend& backend_;
  JobKinds kinds_;  // that are offered
  // What Inspect found.
  monitoring::CorePlan cores_;
  std::optional<SlotLock> slot_lock_;
  HardwareFacts hardware_;
  std::vector<monitoring::Finding> findings_;
  Isolation isolation_ = Isolation::kProcess;
  std::unique_ptr<CodeArena> code_;
};

Result<ChildPrograms> CpuMachine::Inspect() {
  if (const std::string why = WhyNoKernels(); !why.empty()) {
    return Fail(ErrorKind::kUnavailable, "this processor cannot run kernels: " + why);
  }
  LF_TRY(const std::vector<int> processors, monitoring::AllowedProcessors());
  cores_ = monitoring::PlanCores(processors, {});
  LF_TRY(slot_lock_, SlotLock::Open(cores_.slot_core));
  if (slot_lock_->is_open_to_all()) {
    log::Warning(
        "worker.open_lock path={} message=\"any user of this host can keep workers from the timing "
        "core: there is no {}\"",
        slot_lock_->path(), kSlotLockDirectory);
  }
  LF_TRY(hardware_, ProbeHardware(cores_.slot_core, {.host = config_.host}));
  LF_TRY_VOID(LeaveTimingCore(cores_));
  // Inspect the host before this process uses its cores.
  findings_ = monitoring::InspectHost({}, {.processors = processors});
  LF_TRY(isolation_, FindIsolation(config_));
  // What they read comes from outside, as bitcode does: not with files and network in reach.
  if (isolation_ != Isolation::kSeccomp && !kHasSanitizer) kinds_.clear();
  LF_TRY(code_, CodeArena::Create({}));
  return ChildProgramsOf(config_, backend_, kinds_, cores_, isolation_, *code_);
}

Status CpuMachine::Run(const Daemon& daemon) {
  const GradeLimit limit = GradeLimitOf(findings_);
  const auto max_threads = static_cast<std::uint32_t>(KernelCores(config_, cores_).size());
  std::vector<std::unique_ptr<PreparerChildren>> children;
  std::vector<CpuTarget::Preparer> preparers;
  for (std::uint32_t i = 0; i < PreparerCount(config_, cores_); ++i) {
    children.push_back(
        std::make_unique<PreparerChildren>(daemon.fork_server, config_, daemon.on_restart));
    LF_TRY_VOID(children.back()->compiler.EnsureChild());
    LF_TRY_VOID(children.back()->reference.EnsureChild());
    LF_TRY_VOID(children.back()->verifier.EnsureChild());
    preparers.push_back({.compiler = children.back()->compiler,
                         .reference = children.back()->reference,
                         .verifier = children.back()->verifier});
  }
  ExecutorProcess executor(daemon.fork_server, {.run_limit = config_.run_limit}, daemon.on_restart);
  LF_TRY_VOID(executor.EnsureChild());
  ExecutorProcess canaries(daemon.fork_server, {.run_limit = config_.run_limit}, daemon.on_restart);
  ExecutorProcess profiler(daemon.fork_server,
                           {.role = ChildRole::kProfiler, .run_limit = config_.run_limit},
                           daemon.on_restart);
  AwakeCore awake(cores_.slot_core, MayKeepAwake(cores_, limit) ? config_.awake : Nanos{0},
                  *HostIsa().core_kernels);
  awake.Renew();
  const TimingSlot::Options slot_options;
  const Result<DeviceReading> metered = MeasureDeviceAlone(
      canaries, *slot_lock_, hardware_, {.patience = slot_options.lock_timeout, .should_stop = [&] {
                                           return daemon.signals.IsPending();
                                         }});
  if (!metered && metered.error().kind == ErrorKind::kClosed)
    return {};  // stopped while waiting for the timing core
  LF_TRY(const DeviceReading reading, metered);
  hardware_.clock_mhz = ReferenceClock(config_, reading, hardware_);
  DeviceHealth device({.canary_interval = config_.canary_interval}, reading, hardware_);
  hardware_ = device.hardware();
  if (!device.HasSeenQuiet()) {
    log::Warning(
        "worker.neighbour message=\"something else used the timing core for as long as it was "
        "measured: figures are of grade C until it is quiet\"");
  }
  daemon.metrics.SetPeaks(hardware_.peaks.flop_per_second, hardware_.peaks.read_bytes_per_second,
                          hardware_.peaks.triad_bytes_per_second);
  TimingSlot slot(slot_options, *std::move(slot_lock_),
                  {.kernels = executor, .canaries = canaries, .profiler = profiler}, daemon.clock);

  const Conditions conditions{.hardware = hardware_,
                              .compiler = backend_.compiler,
                              .policy = std::string(kPolicyName),
                              .isolation = ConditionText(isolation_, limit)};
  const MemoryShare memory = MemoryShare::Of(hardware_.memory_bytes);
  const std::size_t max_held = 2UL * config_.slots * config_.credit_per_slot;
  EvaluationPipeline<CpuTarget> pipeline(
      {.max_held = max_held,
       .max_prepared = config_.max_prepared,
       .max_threads = max_threads,
       .best_grade = limit.best,
       .max_tensor_bytes = memory.max_tensor_bytes,
       .max_written_bytes = memory.max_written_bytes,
       .workloads = memory.workloads(config_.workload_cache_bytes),
       .arenas = memory.arenas()},
      {.preparers = preparers,
       .slot = slot,
       .device = device,
       .awake = awake,
       .code = *code_,
       .metrics = daemon.metrics,
       .clock = daemon.clock},
      conditions, daemon.on_output);

  std::vector<KindRouter::Route> routes;
  for (const JobKind& kind : kinds_) {
    routes.push_back({.kind = kind.kind,
                      .runner = kind.make_runner({.fork_server = daemon.fork_server,
                                                  .metrics = daemon.metrics,
                                                  .preparations = pipeline.preparations(),
                                                  .clock = daemon.clock,
                                                  .conditions = conditions,
                                                  .max_held = max_held,
                                                  .llvm_programs = config_.llvm_programs,
                                                  .on_output = daemon.on_output,
                                                  .on_restart = daemon.on_restart})});
  }
  KindRouter runner(pipeline, std::move(routes));

  const monitoring::HostSensors sensors({}, cores_.slot_core);
  daemon.registry.OnScrape([&] {
    pipeline.SettleDuty();
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    daemon.metrics.SetHostClock(sensors.ClockHertz().value_or(kUnknown));
    daemon.metrics.SetTemperature(sensors.TemperatureCelsius().value_or(kUnknown));
    daemon.metrics.SetThrottles(sensors.Throttles());
  });

  wire::WorkerHello hello = MakeHello(config_, conditions, max_threads);
  hello.hindrances = FindHindrances(findings_, isolation_);
  for (const TaskKind kind : {TaskKind::kProbe, TaskKind::kProfile}) {
    hello.capabilities.emplace_back(TaskOf(kind).label);
  }
  for (const JobKind& kind : kinds_) hello.capabilities.emplace_back(TaskOf(kind.kind).label);
  log::Info("worker.timing_core core={}", cores_.slot_core);
  return daemon.serve({.runner = runner,
                       .hello = std::move(hello),
                       .canaries = [&] { return device.health(); },
                       .set_reference_clock = [&](double mhz) { device.SetReferenceClock(mhz); }});
}

}  // namespace

std::unique_ptr<Machine> MakeCpuMachine(const WorkerConfig& config, const Backend& backend,
                                        const JobKinds& kinds) {
  return std::make_unique<CpuMachine>(config, backend, kinds);
}

}  // namespace loopfleet::worker
