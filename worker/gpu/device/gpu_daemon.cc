#include "worker/gpu/device/gpu_daemon.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "monitoring/registry.h"
#include "worker/coordinator_link/service.h"
#include "worker/evaluation/memory_share.h"
#include "worker/gpu/device/gpu_children.h"
#include "worker/gpu/device/gpu_judge.h"
#include "worker/gpu/device/gpu_target.h"
#include "worker/host/hardware.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {
namespace {

constexpr std::array kChildren = {ChildRole::kCompiler, ChildRole::kReference, ChildRole::kDevice};
// A job may use this fraction (1/4) of the device's memory: a kernel is timed on several copies of
// its tensors.
constexpr std::int64_t kShareOfDeviceMemory = 4;

struct PreparerChildren {
  PreparerChildren(ForkServer& fork_server, const WorkerConfig& config,
                   const RestartListener& on_restart)
      : compiler(fork_server, config.compile_limit, on_restart),
        reference(fork_server, config.reference_limit, on_restart) {}

  CompilerProcess compiler;
  ReferenceProcess reference;
};

std::uint32_t PreparerCount(const WorkerConfig& config) {
  constexpr unsigned kMost = 4;  // enough to keep more than one device busy
  if (config.preparers > 0) return config.preparers;
  return std::clamp(std::thread::hardware_concurrency(), 1U, kMost);
}

void TellOf(const WorkerConfig& config, const GpuProbe& probe) {
  log::Info(
      "device.found device=cuda:{} model=\"{}\" arch={} bus={} driver=\"{}\" assembler=\"{}\" "
      "tflops={:.2f} gb_per_second={:.1f}",
      *config.cuda_device, probe.facts.name, GpuArch{probe.facts.compute_capability}.Name(),
      probe.facts.bus_id, probe.driver_version, probe.assembler_name,
      probe.peaks.flop_per_second * 1e-12, probe.peaks.read_bytes_per_second * 1e-9);
  if (!probe.why_driver.empty()) {
    log::Warning("device.driver_assembles reason=\"{}\"", probe.why_driver);
  }
  if (probe.no_sensors.empty()) {
    log::Info(
        "device.sensors clock_mhz={} memory_clock_mhz={} max_clock_mhz={} temperature_c={} "
        "power_w={} throttle=\"{}\"",
        probe.reading.clock_mhz, probe.reading.memory_clock_mhz, probe.max_clock_mhz,
        probe.reading.temperature_c, probe.reading.power_w,
        ThrottleText(probe.reading.throttle_reasons));
  } else {
    log::Warning(
        "device.no_sensors reason=\"{}\" message=\"throttling and other users of the "
        "device cannot be noticed\"",
        probe.no_sensors);
  }
  if (probe.facts.is_fake) {
    log::Warning(
        "device.fake message=\"a library of loopfleet's tests stands in the place of the "
        "CUDA driver: no figure of this worker is one of a GPU\"");
  }
}

}  // namespace

HardwareFacts GpuHardware(const GpuProbe& probe, const HardwareFacts& host) {
  const CudaDriver::Facts& cuda = probe.facts;
  HardwareFacts facts;
  facts.device = DeviceKind::kCuda;
  facts.model = cuda.is_fake ? "fake" : cuda.name;
  facts.isa = GpuArch{cuda.compute_capability}.Name();
  facts.microcode =
      fmt::format("CUDA {}.{}{}{}", cuda.driver_version / 1000, cuda.driver_version % 1000 / 10,
                  probe.driver_version.empty() ? "" : ", driver ", probe.driver_version);
  facts.physical_cores = static_cast<std::uint32_t>(std::max(cuda.multiprocessors, 0));
  facts.logical_cores = facts.physical_cores;
  facts.l2_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(cuda.l2_bytes, 0));
  facts.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(cuda.memory_bytes, 0));
  facts.peaks = probe.peaks;
  facts.host = host.host;
  facts.kernel = host.kernel;
  // The driver's version is part of the class: it affects launches, and kernels where it assembles.
  facts.hardware_class = fmt::format(
      "cuda:{}:{}:{}sm:l2={}K:{}M:clock={:.0f}:{}", facts.model, facts.isa, facts.physical_cores,
      facts.l2_bytes / 1024, facts.memory_bytes >> 20, probe.max_clock_mhz, facts.microcode);
  return facts;
}

Status RunGpuWorker(const WorkerConfig& config) {
  LF_CHECK(config.cuda_device.has_value(), "no device to run on");
  LF_TRY(std::optional<wire::PeerKeys> keys, LoadWorkerKeys(config));
  LF_TRY(const HardwareFacts host, ProbeHardware(0, {.host = config.host}));
  // The order matters from here on: this process must fork before it starts any thread.
  LF_TRY(const GpuProbe probe, ProbeGpu(*config.cuda_device));
  TellOf(config, probe);
  const HardwareFacts hardware = GpuHardware(probe, host);
  LF_TRY(GpuCanary canary, MakeGpuCanary(GpuArch{probe.facts.compute_capability}));
  canary.code = probe.canary_code;
  const Isolation isolation = ProbeIsolation();
  LF_TRY(const std::unique_ptr<ForkServer> fork_server,
         ForkServer::Start(
             GpuChildPrograms({.ordinal = *config.cuda_device,
                               .arch = GpuArch{probe.facts.compute_capability},
                               .assembler = probe.assembler,
                               .canary = std::move(canary),
                               .isolation = isolation,
                               .run_limit = config.run_limit,
                               .compile_limit = config.compile_limit,
                               .compiler_private_bytes = config.compiler_private_bytes,
                               .reference_private_bytes = config.reference_private_bytes})));
  LF_TRY(const std::unique_ptr<SignalWatcher> signals, SignalWatcher::Start());

  const SystemClock clock;
  monitoring::Registry registry;
  monitoring::RegisterBuildInfo(registry, {.component = "worker", .version = LOOPFLEET_VERSION});
  monitoring::WorkerMetrics metrics(registry, MetricLabels(kChildren));
  metrics.SetPeaks(hardware.peaks.flop_per_second, hardware.peaks.read_bytes_per_second,
                   hardware.peaks.triad_bytes_per_second);
  const RestartListener on_restart = [&](ChildRole role, ExitReason::Cause cause) {
    metrics.ChildRestarted(ChildRoleName(role), RestartReason(cause));
    log::Warning("child.ended child={} reason={}", ChildRoleName(role), RestartReason(cause));
  };
  std::vector<std::unique_ptr<PreparerChildren>> children;
  std::vector<GpuTarget::Preparer> preparers;
  for (std::uint32_t i = 0; i < PreparerCount(config); ++i) {
    children.push_back(std::make_unique<PreparerChildren>(*fork_server, config, on_restart));
    LF_TRY_VOID(children.back()->compiler.EnsureChild());
    LF_TRY_VOID(children.back()->reference.EnsureChild());
    preparers.push_back(
        {.compiler = children.back()->compiler, .reference = children.back()->reference});
  }
  GpuProcess device(*fork_server, {.run_limit = config.run_limit}, on_restart);
  if (const auto ready = device.EnsureReady(); !ready) {
    return Fail(ErrorKind::kUnavailable, fmt::format("cuda:{} cannot be used: {}",
                                                     *config.cuda_device, ready.error().message));
  }

  CompilerFacts compiler =
      GpuBackend(GpuArch{probe.facts.compute_capability}, probe.assembler).compiler;
  compiler.revision += "+" + probe.assembler_name;
  // Compiler and reference children are isolated as on a CPU worker. The device isolates kernels.
  const Conditions conditions{.hardware = hardware,
                              .compiler = std::move(compiler),
                              .policy = std::string(kGpuPolicyName),
                              .isolation = "device+process+rlimits"};
  DeviceRetirement retirement;
  wire::Wakeup wakeup;
  wire::Context context;
  const auto of_device =
      static_cast<std::uint64_t>(probe.facts.memory_bytes / kShareOfDeviceMemory);
  const GpuTarget::Options defaults;
  const MemoryShare memory = MemoryShare::Of(host.memory_bytes);
  EvaluationPipeline<GpuTarget> pipeline(
      {.max_held = 2UL * config.slots * config.credit_per_slot,
       .max_prepared = config.max_prepared,
       .max_tensor_bytes = std::min(memory.max_tensor_bytes, of_device),
       .max_scratch_bytes = std::min(defaults.max_scratch_bytes, of_device),
       .truth = probe.facts.is_fake ? DeviceTruth::kFake : DeviceTruth::kReal,
       .workloads = {.max_bytes =
                         std::min(config.workload_cache_bytes, memory.max_kept_workload_bytes),
                     .max_total_bytes = memory.max_workload_bytes},
       .arenas = {.max_bytes = memory.max_arena_bytes,
                  .max_idle_bytes = memory.max_idle_arena_bytes}},
      {.preparers = preparers,
       .device = device,
       .retirement = retirement,
       .metrics = metrics,
       .clock = clock},
      conditions, [&] { wakeup.Signal(); });
  registry.OnScrape([&] { pipeline.SettleDuty(); });
  wire::WorkerHello hello = MakeHello(config, conditions, 1);
  // No core is set aside: a busy or slow host delays launches, which the device's clock shows.
  hello.hindrances = FindHindrances({}, isolation);
  return Serve(config,
               {.keys = std::move(keys),
                .context = context,
                .wakeup = wakeup,
                .runner = pipeline,
                .fork_server = *fork_server,
                .signals = *signals,
                .registry = registry,
                .metrics = metrics,
                .clock = clock,
                .canaries = [] { return CanaryHealth{}; },
                .set_reference_clock = [](double) {},
                .retirement = &retirement},
               hello);
}

}  // namespace loopfleet::worker
