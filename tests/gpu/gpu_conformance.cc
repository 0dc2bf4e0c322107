// What only a GPU can show: that kernels compute there what the program means, how long they take,
// and that hostile ones are survived. Needs NVIDIA's driver; nvJitLink if it is there, else the
// driver assembles. One executable without a library of ours, LLVM's or C++'s beside it:
// tests/gpu/run.sh.
//
//   gpu_conformance [--device 0] [--trees 500] [--seed 1]    the report, on standard output
//   gpu_conformance --fault NAME [--device 0]                one hostile kernel, in this process
//
// Exit codes: 0 all passed, 1 something failed, 77 there is no CUDA device: nothing was tested.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/looptree/benchmark.h"
#include "common/looptree/walk.h"
#include "tests/unit/worker/lowering/fuzz_case.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "worker/gpu/device_plan.h"
#include "worker/gpu/driver.h"
#include "worker/gpu/gpu_compiler.h"
#include "worker/gpu/gpu_device.h"
#include "worker/gpu/ptx_assembler.h"

namespace loopfleet::worker {
namespace {

constexpr int kFailed = 1;
constexpr int kNothingTested = 77;

struct Options {
  int device = 0;
  int trees = 500;
  std::uint64_t seed = 1;
  std::string fault;
};

struct Bench {
  CudaDriver& driver;
  GpuDevice& device;
  GpuArch arch;
  GpuCompiler& compiler;
  PtxAssembler* assembler = nullptr;  // null: the driver assembles
};

// Code that the device takes.
std::expected<std::string, Failure> CodeFor(const Bench& bench, const GpuKernel& kernel) {
  if (bench.assembler == nullptr) return kernel.ptx;
  auto cubin = bench.assembler->Assemble(kernel.ptx, bench.arch);
  if (cubin.has_value()) return std::move(cubin->bytes);
  return std::unexpected(
      Failure{.code = FailureCode::kCompileError, .message = cubin.error().message});
}

// "" if the tree gives on the device what the program means.
std::string CheckTree(const Bench& bench, const looptree::LoopTree& tree,
                      const std::vector<looptree::Tensor>& inputs,
                      const looptree::Reference& reference, int& refused) {
  const auto kernel = bench.compiler.Compile(tree);
  if (!kernel.has_value()) {
    ++refused;
    return kernel.error().code == FailureCode::kLimitUnroll ? "" : kernel.error().message;
  }
  const auto code = CodeFor(bench, *kernel);
  if (!code) return code.error().message;
  const auto loaded = bench.device.Load(*kernel, *code);
  if (!loaded) return loaded.error().message;
  const auto outputs = bench.device.Run(**loaded, inputs);
  if (!outputs) return outputs.error().message;
  return Difference(*outputs, reference);
}

int RunConformance(const Bench& bench, const Options& options) {
  FuzzCases cases(options.seed);
  CachedReference references;
  int right = 0;
  int wrong = 0;
  int refused = 0;
  for (int i = 0; i < options.trees && !bench.device.lost(); ++i) {
    const FuzzCase fuzz = cases.Next();
    const auto replayed = ReplayJob(fuzz.job);
    if (!replayed) continue;
    const auto& [inputs, reference] = references.Of(replayed->tree.program(), fuzz.input_seed);
    const int before = refused;
    const std::string problem = CheckTree(bench, replayed->tree, inputs, reference, refused);
    if (!problem.empty()) {
      ++wrong;
      fmt::print("- WRONG: {}\n  {}\n", problem, ToLine(fuzz));
    } else if (refused == before) {
      ++right;
    }
  }
  fmt::print(
      "\n## Conformance\n\n{} random trees right, {} wrong, {} refused for being unrolled too "
      "far\n",
      right, wrong, refused);
  return wrong;
}

struct Schedule {
  const char* uri;
  const char* actions;
};
constexpr Schedule kTimed[] = {
    {"benchmark://loop_tool-cuda-v0/65536", ""},
    {"benchmark://loop_tool-cuda-v0/1048576", ""},
    {"benchmark://loop_tool-cuda-v0/8388607", ""},
    {"benchmark://mm-v0/mm1024_1024_1024", ""},
    {"benchmark://mm-v0/mm1024_1024_1024", "swap_down"},
    {"benchmark://mm-v0/mm1024_1024_1024", "split_64,down,swap_down"},
    {"benchmark://mm-v0/mm2048_2048_2048", "swap_down"},
    {"benchmark://mm-v0/mm4096_4096_4096", "swap_down"},
};

// Batches of some milliseconds each after as many to let the clocks rise: the median, and how far
// the whole goes apart.
std::expected<std::pair<double, double>, Failure> Measure(GpuDevice& device,
                                                          GpuDevice::Loaded& kernel) {
  int runs = 1;
  for (;;) {
    LF_TRY(const double ns, device.Time(kernel, runs));
    if (ns >= 5e6 || runs >= 1 << 20) break;
    runs *= 2;
  }
  std::vector<double> samples;
  for (int batch = 0; batch < 30; ++batch) {
    LF_TRY(const double ns, device.Time(kernel, runs));
    if (batch >= 10) samples.push_back(ns / runs);
  }
  std::ranges::sort(samples);
  const double median = samples[samples.size() / 2];
  return std::pair(median, (samples.back() - samples.front()) / median);
}

int RunTiming(const Bench& bench) {
  int failed = 0;
  fmt::print(
      "\n## Timing (device's own clock, warm, median of 20 batches of at least 5 ms)\n\n"
      "| benchmark | actions | us | spread | GFLOP/s | GB/s of tensors "
      "|\n|---|---|---|---|---|---|\n");
  for (const Schedule& schedule : kTimed) {
    const auto actions = looptree::ParseActionList(schedule.actions);
    const auto replayed = looptree::Replay(looptree::BenchmarkUri{schedule.uri}, actions.value());
    const looptree::LoopTree& tree = replayed.value().tree;
    const auto inputs = SmallIntegers(tree.program(), 1);
    const auto kernel = bench.compiler.Compile(tree);
    const auto measured = [&]() -> std::expected<std::pair<double, double>, Failure> {
      LF_TRY(const std::string code, CodeFor(bench, kernel.value()));
      LF_TRY(const auto loaded, bench.device.Load(*kernel, code));
      LF_TRY_VOID(bench.device.Run(*loaded, inputs));
      return Measure(bench.device, *loaded);
    }();
    if (!measured) {
      ++failed;
      fmt::print("| {} | {} | FAILED: {} | | | |\n", schedule.uri, schedule.actions,
                 measured.error().message);
      continue;
    }
    const double ns = measured->first;
    fmt::print("| {} | {} | {:.2f} | {:.4f} | {:.1f} | {:.1f} |\n", schedule.uri, schedule.actions,
               ns / 1e3, measured->second,
               static_cast<double>(looptree::FlopCount(tree.program())) / ns,
               static_cast<double>(looptree::TensorBytes(tree.program())) / ns);
  }
  return failed;
}

// ---- hostile kernels

struct Fault {
  const char* name;
  const char* body;  // of a kernel with one 64-bit parameter, the address of an output
  std::uint64_t elements;
  FailureCode expected;
};
constexpr Fault kFaults[] = {
    {"illegal-address", "mov.u64 %rd1, 16; st.global.u32 [%rd1], %r1;", 16, FailureCode::kRunCrash},
    {"misaligned", "add.s64 %rd1, %rd1, 2; st.global.u32 [%rd1], %r1;", 16, FailureCode::kRunCrash},
    {"trap", "trap;", 16, FailureCode::kRunCrash},
    // The store keeps the loop from being taken for one that does nothing.
    {"endless", "L: st.volatile.global.u32 [%rd1], %r1; bra L;", 16, FailureCode::kRunTimeout},
    {"too-much-memory", "st.global.u32 [%rd1], %r1;", std::uint64_t{1} << 40, FailureCode::kRunOom},
};

std::string HostilePtx(const Fault& fault) {
  return fmt::format(R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry hostile(.param .u64 p) {{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  mov.u32 %r1, 1;
  ld.param.u64 %rd1, [p];
  {}
  ret;
}}
)",
                     fault.body);
}

int RunFault(CudaDriver& driver, const Options& options) {
  for (const Fault& fault : kFaults) {
    if (options.fault != fault.name) continue;
    auto device = GpuDevice::Open(
        driver, {.ordinal = options.device, .run_limit = std::chrono::milliseconds(2000)});
    if (!device) return kFailed;
    GpuKernel kernel;
    kernel.launches = {{.symbol = "hostile", .blocks = 1, .threads = 32}};
    kernel.buffers = {{.role = BufferSpec::Role::kOutput, .element_count = fault.elements}};
    const auto ran = [&]() -> std::expected<void, Failure> {
      LF_TRY(const auto loaded, (*device)->Load(kernel, HostilePtx(fault)));
      LF_TRY_VOID((*device)->Run(*loaded, {}));
      return {};
    }();
    const bool right = !ran.has_value() && ran.error().code == fault.expected;
    fmt::print("- {} {}: {}\n", right ? "right" : "WRONG", fault.name,
               ran.has_value() ? "it ran" : ran.error().message);
    std::fflush(stdout);
    // Not through destructors: a running kernel would be waited for.
    ::_exit(right ? 0 : kFailed);
  }
  fmt::print(stderr, "gpu_conformance: there is no fault '{}'\n", options.fault);
  return 2;
}

// Each in a process of its own, as a worker would; the device has to be well after each.
int RunFaults(const char* program, const Options& options) {
  fmt::print("\n## Hostile kernels, each in a process of its own\n\n");
  int failed = 0;
  for (const Fault& fault : kFaults) {
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string device = std::to_string(options.device);
      ::execl(program, program, "--fault", fault.name, "--device", device.c_str(), nullptr);
      ::_exit(kFailed);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++failed;
  }
  return failed;
}

int Report(CudaDriver& driver, const Options& options) {
  auto device = GpuDevice::Open(driver, {.ordinal = options.device, .clock = {}});
  if (!device) {
    fmt::print("NOTHING TESTED: {}\n", device.error().message);
    return kNothingTested;
  }
  const CudaDriver::Facts& facts = (*device)->facts();
  const GpuArch arch{facts.compute_capability};
  auto compiler = GpuCompiler::Create({.arch = arch, .limits = {}});
  if (!compiler) {
    fmt::print("{}\n", compiler.error().message);
    return kFailed;
  }
  auto assembler = OpenNvJitLink();
  fmt::print(
      "# GPU report\n\n| | |\n|---|---|\n| device | {}, {} |\n| multiprocessors, memory, L2 | {}, "
      "{} MiB, {} KiB |\n"
      "| driver | CUDA {}.{} |\n| assembler | {} |\n| compiler | LLVM {}, {} |\n",
      facts.name, arch.Name(), facts.multiprocessors, facts.memory_bytes >> 20,
      facts.l2_bytes >> 10, facts.driver_version / 1000, facts.driver_version % 1000 / 10,
      assembler ? (*assembler)->Version() : "the driver's (" + assembler.error().message + ")",
      GpuCompilerFacts().llvm, GpuCompilerFacts().revision);
  const Bench bench{.driver = driver,
                    .device = **device,
                    .arch = arch,
                    .compiler = **compiler,
                    .assembler = assembler ? assembler->get() : nullptr};
  const int failed = RunConformance(bench, options) + RunTiming(bench);
  return failed == 0 ? 0 : kFailed;
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--device") options.device = std::atoi(argv[i + 1]);
    if (flag == "--trees") options.trees = std::atoi(argv[i + 1]);
    if (flag == "--seed") options.seed = static_cast<std::uint64_t>(std::atoll(argv[i + 1]));
    if (flag == "--fault") options.fault = argv[i + 1];
  }
  auto driver = OpenCudaDriver();
  if (!driver) {
    fmt::print("NOTHING TESTED: {}\n", driver.error().message);
    return kNothingTested;
  }
  if (!options.fault.empty()) return RunFault(**driver, options);
  const int reported = Report(**driver, options);
  if (reported == kNothingTested) return reported;
  const int faults = RunFaults("/proc/self/exe", options);
  // And the device is as before.
  const Options after{.device = options.device, .trees = 20, .seed = options.seed + 1, .fault = ""};
  fmt::print("\n# Once more, after them\n\n");
  const int again = Report(**driver, after);
  const bool passed = reported == 0 && faults == 0 && again == 0;
  fmt::print("\n{}\n", passed ? "ALL PASSED" : "SOMETHING FAILED");
  return passed ? 0 : kFailed;
}

}  // namespace
}  // namespace loopfleet::worker

int main(int argc, char** argv) { return loopfleet::worker::Main(argc, argv); }
