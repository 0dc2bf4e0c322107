#include "worker/gpu/device/gpu_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/job/task.h"
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
  if (!probe.no_peaks.empty()) {
    log::Warning(
        "device.no_peaks reason=\"{}\" message=\"no figure is refused for being above them; start "
        "the worker again when it has the device alone and cool\"",
        probe.no_peaks);
  }
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

class GpuMachine final : public Machine {
 public:
  explicit GpuMachine(const WorkerConfig& config) : config_(config) {}

  std::span<const ChildRole> children() const override { return kChildren; }
  Result<ChildPrograms> Inspect() override;
  Status Run(const Daemon& daemon) override;

 private:
  const WorkerConfig& config_;
  // What Inspect found.
  HardwareFacts host_;
  GpuProbe probe_;
  Isolation isolation_ = Isolation::kProcess;
};

Result<ChildPrograms> GpuMachine::Inspect() {
  LF_CHECK(config_.cuda_device.has_value(), "no device to run on");
  LF_TRY(isolation_, FindIsolation(config_));
  LF_TRY(host_, ProbeHardware(0, {.host = config_.host}));
  LF_TRY(probe_, ProbeGpu(*config_.cuda_device));
  TellOf(config_, probe_);
  const GpuArch arch{probe_.facts.compute_capability};
  LF_TRY(GpuCanary canary, MakeGpuCanary(arch));
  canary.code = probe_.canary_code;
  return GpuChildPrograms({.ordinal = *config_.cuda_device,
                           .arch = arch,
                           .assembler = probe_.assembler,
                           .assembler_place = probe_.assembler_place,
                           .canary = std::move(canary),
                           .isolation = isolation_,
                           .run_limit = config_.run_limit,
                           .compile_limit = config_.compile_limit,
                           .compiler_private_bytes = config_.compiler_private_bytes,
                           .reference_private_bytes = config_.reference_private_bytes});
}

Status GpuMachine::Run(const Daemon& daemon) {
  const HardwareFacts hardware = GpuHardware(probe_, host_);
  daemon.metrics.SetPeaks(hardware.peaks.flop_per_second, hardware.peaks.read_bytes_per_second,
                          hardware.peaks.triad_bytes_per_second);
  std::vector<std::unique_ptr<PreparerChildren>> children;
  std::vector<GpuTarget::Preparer> preparers;
  for (std::uint32_t i = 0; i < PreparerCount(config_); ++i) {
    children.push_back(
        std::make_unique<PreparerChildren>(daemon.fork_server, config_, daemon.on_restart));
    LF_TRY_VOID(children.back()->compiler.EnsureChild());
    LF_TRY_VOID(children.back()->reference.EnsureChild());
    preparers.push_back(
        {.compiler = children.back()->compiler, .reference = children.back()->reference});
  }
  GpuProcess device(daemon.fork_server, {.run_limit = config_.run_limit}, daemon.on_restart);
  if (const auto ready = device.EnsureReady(); !ready) {
    return Fail(ErrorKind::kUnavailable, fmt::format("cuda:{} cannot be used: {}",
                                                     *config_.cuda_device, ready.error().message));
  }

  CompilerFacts compiler =
      GpuBackend(GpuArch{probe_.facts.compute_capability}, probe_.assembler).compiler;
  compiler.revision += "+" + probe_.assembler_name;
  // Compiler and reference children are isolated as on a CPU worker. The device isolates kernels.
  const Conditions conditions{.hardware = hardware,
                              .compiler = std::move(compiler),
                              .policy = std::string(kGpuPolicyName),
                              .isolation = "device+process+rlimits"};
  DeviceRetirement retirement;
  const auto of_device =
      static_cast<std::uint64_t>(probe_.facts.memory_bytes / kShareOfDeviceMemory);
  const GpuTarget::Options defaults;
  const MemoryShare memory = MemoryShare::Of(host_.memory_bytes);
  EvaluationPipeline<GpuTarget> pipeline(
      {.max_held = 2UL * config_.slots * config_.credit_per_slot,
       .max_prepared = config_.max_prepared,
       .max_tensor_bytes = std::min(memory.max_tensor_bytes, of_device),
       .max_scratch_bytes = std::min(defaults.max_scratch_bytes, of_device),
       .truth = probe_.facts.is_fake ? DeviceTruth::kFake : DeviceTruth::kReal,
       .workloads = memory.workloads(config_.workload_cache_bytes),
       .arenas = memory.arenas()},
      {.preparers = preparers,
       .device = device,
       .retirement = retirement,
       .metrics = daemon.metrics,
       .clock = daemon.clock},
      conditions, daemon.on_output);
  daemon.registry.OnScrape([&] { pipeline.SettleDuty(); });
  wire::WorkerHello hello = MakeHello(config_, conditions, 1);
  hello.capabilities.emplace_back(TaskOf(TaskKind::kProfile).label);
  // No core is set aside: a busy or slow host delays launches, which the device's clock shows.
  hello.hindrances = FindHindrances({}, isolation_);
  return daemon.serve({.runner = pipeline, .hello = std::move(hello), .retirement = &retirement});
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

std::unique_ptr<Machine> MakeGpuMachine(const WorkerConfig& config) {
  return std::make_unique<GpuMachine>(config);
}

}  // namespace loopfleet::worker
