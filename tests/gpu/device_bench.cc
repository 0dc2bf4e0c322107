#include "tests/gpu/device_bench.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/result.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/datasets/benchmark.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "worker/gpu/device/gpu_canary.h"

namespace loopfleet::worker {
namespace {

// Empty if the driver accepts the assembler's cubins. An old driver may not, and then assembles
// itself.
std::string Validate(PtxAssembler& assembler, GpuDevice& device, GpuArch arch) {
  const auto canary = MakeGpuCanary(arch);
  if (!canary) return canary.error().message;
  const auto cubin = assembler.Assemble(canary->kernel.ptx, arch);
  if (!cubin) return cubin.error().message;
  const auto loaded = device.Load(canary->kernel, cubin->bytes);
  if (loaded) return "";
  return fmt::format("the driver does not take the code of {}: {}", assembler.Version(),
                     loaded.error().message);
}

}  // namespace

void WithDevice(CudaDriver& driver, const Options& options, Report& report,
                const std::function<void(const DeviceBench&)>& use) {
  auto device = GpuDevice::Open(driver, {.ordinal = options.device, .clock = {}});
  if (!device) return report.Fail(device.error().message);
  const GpuArch arch{(*device)->facts().compute_capability};
  auto compiler = GpuCompiler::Create({.arch = arch, .limits = {}});
  if (!compiler) return report.Fail(compiler.error().message);
  std::string missing;
  auto assembler = OpenNvJitLink();
  if (!assembler) {
    missing = assembler.error().message;
  } else if (const std::string why = Validate(**assembler, **device, arch); !why.empty()) {
    missing = why;
    assembler->reset();
  }
  auto sensors = OpenNvml((*device)->facts().bus_id);
  if (!sensors) missing += (missing.empty() ? "" : "; ") + sensors.error().message;
  use({.report = report,
       .driver = driver,
       .device = **device,
       .arch = arch,
       .compiler = **compiler,
       .assembler = assembler ? assembler->get() : nullptr,
       .sensors = sensors ? sensors->get() : nullptr,
       .missing = std::move(missing)});
}

std::expected<std::string, Failure> CodeFor(const DeviceBench& bench, const GpuKernel& kernel) {
  if (bench.assembler == nullptr) return kernel.ptx;
  auto cubin = bench.assembler->Assemble(kernel.ptx, bench.arch);
  if (cubin.has_value()) return std::move(cubin->bytes);
  return std::unexpected(
      Failure{.code = FailureCode::kCompileError, .message = cubin.error().message});
}

looptree::LoopTree Walked(const std::string& uri, const std::string& actions) {
  const auto parsed = looptree::ParseActionList(actions);
  return looptree::Replay(looptree::BenchmarkUri{uri}, parsed.value(),
                          {.on_illegal = looptree::OnIllegal::kSkip})
      .value()
      .tree;
}

SamplingPolicy BenchPolicy(CacheState cache) {
  SamplingPolicy policy;
  policy.min_samples = 5;
  policy.min_repetition_ns = 5'000'000;
  policy.precision = 0.002;
  policy.budget_ns = 300'000'000;
  policy.patience_ns = 2'000'000'000;
  policy.cache = cache;
  return policy;
}

std::expected<DeviceSamples, Failure> MeasureTree(const DeviceBench& bench,
                                                  const looptree::LoopTree& tree,
                                                  const SamplingPolicy& policy) {
  LF_TRY(const GpuKernel kernel, bench.compiler.Compile(tree));
  LF_TRY(const std::string code, CodeFor(bench, kernel));
  LF_TRY(const auto loaded, bench.device.Load(kernel, code));
  LF_TRY_VOID(bench.device.Run(*loaded, SmallIntegers(tree.program(), 1)));
  LF_TRY_VOID(bench.device.SetRandomInputs(*loaded));
  return TakeDeviceSamples(bench.device, *loaded, policy, bench.sensors);
}

std::string WhyNotJudged(const DeviceSamples& samples) {
  if (samples.was_shared) return "another process has the device";
  if (2 * static_cast<std::size_t>(samples.throttled) > samples.samples.ns.size()) {
    return fmt::format("the device was held back ({})",
                       ThrottleText(samples.state ? samples.state->throttle_reasons : 0));
  }
  return "";
}

std::string StateText(const SensorReading& reading) {
  if (reading == SensorReading{}) return "-";
  return fmt::format("{:.0f} MHz, {:.0f} C, {:.0f} W{}{}", reading.clock_mhz, reading.temperature_c,
                     reading.power_w, reading.throttle_reasons == 0 ? "" : ", ",
                     ThrottleText(reading.throttle_reasons));
}

}  // namespace loopfleet::worker
