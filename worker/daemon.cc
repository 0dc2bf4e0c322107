#include "worker/daemon.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/signal_watcher.h"
#include "common/job/job_spec.h"
#include "common/job/task.h"
#include "common/wire/transport/context.h"
#include "common/wire/transport/wakeup.h"
#include "monitoring/host/core_plan.h"
#include "monitoring/host/host_inspection.h"
#include "monitoring/host/host_sensors.h"
#include "monitoring/metrics.h"
#include "monitoring/registry.h"
#include "worker/child_programs.h"
#include "worker/coordinator_link/service.h"
#include "worker/evaluation/cpu_target.h"
#include "worker/evaluation/grade_limit.h"
#include "worker/evaluation/kind_router.h"
#include "worker/evaluation/memory_share.h"
#include "worker/host/hardware.h"
#include "worker/processes/executor_process.h"
#include "worker/processes/slot_lock.h"
#include "worker/processes/timing_slot.h"
#include "worker/sandbox/confinement.h"
#include "worker/sandbox/fork_server.h"
#include "worker/sandbox/syscall_filter.h"
#include "worker/verification/code_arena.h"
#include "worker/worker_options.h"

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

Result<Isolation> FindIsolation(const WorkerConfig& config) {
  const Isolation isolation = ProbeIsolation();
  if (isolation == Isolation::kSeccomp) return isolation;
  if (config.sandbox == SandboxDemand::kFull) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("--require-sandbox=full: this host offers '{}' only, for it lets no "
                            "process filter its system calls (seccomp); allow that, or run without "
                            "the flag",
                            IsolationName(isolation)));
  }
  log::Warning("worker.sandbox isolation={} message=\"no filter of system calls on this host\"",
               IsolationName(isolation));
  return isolation;
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

Status RunUntilDrained(const WorkerConfig& config, const Backend& backend, const JobKinds& kinds) {
  LF_TRY(std::optional<wire::PeerKeys> keys, LoadWorkerKeys(config));
  LF_TRY(const std::vector<int> processors, monitoring::AllowedProcessors());
  const monitoring::CorePlan cores = monitoring::PlanCores(processors, {});
  LF_TRY(SlotLock slot_lock, SlotLock::Open(cores.slot_core));
  if (slot_lock.is_open_to_all()) {
    log::Warning(
        "worker.open_lock path={} message=\"any user of this host can keep workers from the timing "
        "core: there is no {}\"",
        slot_lock.path(), kSlotLockDirectory);
  }
  LF_TRY(HardwareFacts hardware, ProbeHardware(cores.slot_core, {.host = config.host}));
  LF_TRY_VOID(LeaveTimingCore(cores));

  // Inspect the host before this process uses its cores.
  const auto findings = monitoring::InspectHost({}, {.processors = processors});
  const GradeLimit limit = GradeLimitOf(findings);

  // The order matters from here on: this process forks only before it has other threads.
  LF_TRY(const Isolation isolation, FindIsolation(config));
  LF_TRY(const std::unique_ptr<CodeArena> code, CodeArena::Create({}));
  const auto max_threads = static_cast<std::uint32_t>(KernelCores(config, cores).size());
  const ChildPrograms programs = ChildProgramsOf(config, backend, kinds, cores, isolation, *code);
  LF_TRY(const std::unique_ptr<ForkServer> fork_server, ForkServer::Start(programs));
  LF_TRY(const std::unique_ptr<SignalWatcher> signals, SignalWatcher::Start());

  const SystemClock clock;
  monitoring::Registry registry;
  monitoring::RegisterBuildInfo(registry, {.component = "worker", .version = LOOPFLEET_VERSION});
  monitoring::WorkerMetrics metrics(registry, MetricLabels(kChildren));
  const RestartListener on_restart = [&](ChildRole role, ExitReason::Cause cause) {
    metrics.ChildRestarted(ChildRoleName(role), RestartReason(cause));
    log::Warning("child.ended child={} reason={}", ChildRoleName(role), RestartReason(cause));
  };
  std::vector<std::unique_ptr<PreparerChildren>> children;
  std::vector<CpuTarget::Preparer> preparers;
  for (std::uint32_t i = 0; i < PreparerCount(config, cores); ++i) {
    children.push_back(std::make_unique<PreparerChildren>(*fork_server, config, on_restart));
    LF_TRY_VOID(children.back()->compiler.EnsureChild());
    LF_TRY_VOID(children.back()->reference.EnsureChild());
    LF_TRY_VOID(children.back()->verifier.EnsureChild());
    preparers.push_back({.compiler = children.back()->compiler,
                         .reference = children.back()->reference,
                         .verifier = children.back()->verifier});
  }
  ExecutorProcess executor(*fork_server, {.run_limit = config.run_limit}, on_restart);
  LF_TRY_VOID(executor.EnsureChild());
  ExecutorProcess canaries(*fork_server, {.run_limit = config.run_limit}, on_restart);
  ExecutorProcess profiler(
      *fork_server, {.role = ChildRole::kProfiler, .run_limit = config.run_limit}, on_restart);
  const TimingSlot::Options slot_options;
  const Result<DeviceReading> metered = MeasureDeviceAlone(
      canaries, slot_lock, hardware,
      {.patience = slot_options.lock_timeout, .should_stop = [&] { return signals->IsPending(); }});
  if (!metered && metered.error().kind == ErrorKind::kClosed)
    return {};  // stopped while waiting for the timing core
  LF_TRY(const DeviceReading reading, metered);
  hardware.clock_mhz = ReferenceClock(config, reading, hardware);
  DeviceHealth device({.canary_interval = config.canary_interval}, reading, hardware);
  hardware = device.hardware();
  if (!device.HasSeenQuiet()) {
    log::Warning(
        "worker.neighbour message=\"something else used the timing core for as long as it was "
        "measured: figures are of grade C until it is quiet\"");
  }
  metrics.SetPeaks(hardware.peaks.flop_per_second, hardware.peaks.read_bytes_per_second,
                   hardware.peaks.triad_bytes_per_second);
  TimingSlot slot(slot_options, std::move(slot_lock),
                  {.kernels = executor, .canaries = canaries, .profiler = profiler}, clock);

  const Conditions conditions{.hardware = hardware,
                              .compiler = backend.compiler,
                              .policy = std::string(kPolicyName),
                              .isolation = ConditionText(isolation, limit)};
  wire::Wakeup wakeup;
  wire::Context context;
  const MemoryShare memory = MemoryShare::Of(hardware.memory_bytes);
  const std::size_t max_held = 2UL * config.slots * config.credit_per_slot;
  EvaluationPipeline<CpuTarget> pipeline(
      {.max_held = max_held,
       .max_prepared = config.max_prepared,
       .max_threads = max_threads,
       .best_grade = limit.best,
       .max_tensor_bytes = memory.max_tensor_bytes,
       .max_written_bytes = memory.max_written_bytes,
       .workloads = {.max_bytes =
                         std::min(config.workload_cache_bytes, memory.max_kept_workload_bytes),
                     .max_total_bytes = memory.max_workload_bytes},
       .arenas = {.max_bytes = memory.max_arena_bytes,
                  .max_idle_bytes = memory.max_idle_arena_bytes}},
      {.preparers = preparers,
       .slot = slot,
       .device = device,
       .code = *code,
       .metrics = metrics,
       .clock = clock},
      conditions, [&] { wakeup.Signal(); });

  std::vector<KindRouter::Route> routes;
  for (const JobKind& kind : kinds) {
    routes.push_back({.kind = kind.kind,
                      .runner = kind.make_runner({.fork_server = *fork_server,
                                                  .metrics = metrics,
                                                  .clock = clock,
                                                  .conditions = conditions,
                                                  .max_held = max_held,
                                                  .llvm_programs = config.llvm_programs,
                                                  .on_output = [&] { wakeup.Signal(); },
                                                  .on_restart = on_restart})});
  }
  KindRouter runner(pipeline, std::move(routes));

  const monitoring::HostSensors sensors({}, cores.slot_core);
  registry.OnScrape([&] {
    pipeline.SettleDuty();
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    metrics.SetHostClock(sensors.ClockHertz().value_or(kUnknown));
    metrics.SetTemperature(sensors.TemperatureCelsius().value_or(kUnknown));
    metrics.SetThrottles(sensors.Throttles());
  });

  wire::WorkerHello hello = MakeHello(config, conditions, max_threads);
  hello.hindrances = FindHindrances(findings, isolation);
  for (const TaskKind kind : {TaskKind::kProbe, TaskKind::kProfile}) {
    hello.capabilities.emplace_back(TaskOf(kind).label);
  }
  for (const JobKind& kind : kinds) hello.capabilities.emplace_back(TaskOf(kind.kind).label);
  log::Info("worker.timing_core core={}", cores.slot_core);
  return Serve(config,
               {.keys = std::move(keys),
                .context = context,
                .wakeup = wakeup,
                .runner = runner,
                .fork_server = *fork_server,
                .signals = *signals,
                .registry = registry,
                .metrics = metrics,
                .clock = clock,
                .canaries = [&] { return device.health(); },
                .set_reference_clock = [&](double mhz) { device.SetReferenceClock(mhz); }},
               hello);
}

}  // namespace

int RunWorker(const WorkerConfig& config, const Backend& backend, const JobKinds& kinds,
              const GpuWorker& gpu) {
  log::Init("loopfleet-worker", config.log_level);
  if (config.cuda_device && !gpu) {
    log::Error("worker.failed message=\"--device cuda:{}: this build has no CUDA worker\"",
               *config.cuda_device);
    return kExitBadConfig;
  }
  const Status ended = config.cuda_device ? gpu(config) : RunUntilDrained(config, backend, kinds);
  if (ended) return 0;
  log::Error("worker.failed message=\"{}\"", ended.error().message);
  const ErrorKind kind = ended.error().kind;
  const bool cannot_be = kind == ErrorKind::kInvalid ||
                         (config.cuda_device && kind == ErrorKind::kNotFound);  // no such device
  return cannot_be ? kExitBadConfig : kExitInternal;
}

int WorkerMain(int argc, const char* const* argv, const Backend& backend, const JobKinds& kinds,
               const GpuWorker& gpu) {
  const std::expected<WorkerConfig, StartupExit> config = ParseWorkerOptions(argc, argv);
  if (config) return RunWorker(*config, backend, kinds, gpu);
  fmt::print(config.error().exit_code == 0 ? stdout : stderr, "{}", config.error().text);
  return config.error().exit_code;
}

}  // namespace loopfleet::worker
