// What only a GPU can show: that kernels compute there what the program means, how long they take,
// and that hostile ones are survived. Needs NVIDIA's driver; nvJitLink if it is there, else the
// driver assembles; NVML, cuBLAS and compute-sanitizer where they are. One executable without a
// library of ours, LLVM's or C++'s beside it: tests/gpu/run.sh, docs/GPU.md.
//
//   gpu_conformance [--device 0] [--trees 500] [--seed 1] [--largest 4096] [--search-seconds 60]
//                   [--repeats 100]                          the report, on standard output
//   gpu_conformance --fault NAME [--device 0]                one hostile kernel, in this process
//   gpu_conformance --only-trees 20                          conformance alone, as under a
//   sanitizer
//
// --largest leaves out products of larger matrices, and additions of more than its square.
// Exit codes: 0 all passed, 1 something failed, 77 there is no CUDA device: nothing was tested.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/base/result.h"
#include "common/looptree/benchmark.h"
#include "common/looptree/walk.h"
#include "tests/gpu/cublas_peer.h"
#include "tests/gpu/schedule_search.h"
#include "tests/unit/worker/lowering/fuzz_case.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "worker/gpu/device_plan.h"
#include "worker/gpu/device_sampler.h"
#include "worker/gpu/device_sensors.h"
#include "worker/gpu/driver.h"
#include "worker/gpu/gpu_canary.h"
#include "worker/gpu/gpu_compiler.h"
#include "worker/gpu/gpu_device.h"
#include "worker/gpu/gpu_meter.h"
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
  int only_trees = 0;
  int largest = 4096;
  int search_seconds = 60;
  int repeats = 100;
};

struct Bench {
  CudaDriver& driver;
  GpuDevice& device;
  GpuArch arch;
  GpuCompiler& compiler;
  PtxAssembler* assembler = nullptr;  // null: the driver assembles
  DeviceSensors* sensors = nullptr;   // null: there are none
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
  int size;  // of the matrices; of an addition, the root of how many
};
constexpr Schedule kTimed[] = {
    {"benchmark://loop_tool-cuda-v0/65536", "", 256},
    {"benchmark://loop_tool-cuda-v0/1048576", "", 1024},
    {"benchmark://loop_tool-cuda-v0/8388607", "", 2896},
    {"benchmark://mm-v0/mm64_64_64", "swap_down", 64},
    {"benchmark://mm-v0/mm1024_1024_1024", "", 1024},
    {"benchmark://mm-v0/mm1024_1024_1024", "swap_down", 1024},
    {"benchmark://mm-v0/mm1024_1024_1024", "split_64,down,swap_down", 1024},
    {"benchmark://mm-v0/mm2048_2048_2048", "swap_down", 2048},
    {"benchmark://mm-v0/mm4096_4096_4096", "swap_down", 4096},
};
constexpr std::uint64_t kCopiedBytes =
    8388607 * 4 * 3 / 2;  // as much traffic as the largest addition

looptree::LoopTree Walked(const char* uri, const std::string& actions) {
  const auto parsed = looptree::ParseActionList(actions);
  return looptree::Replay(looptree::BenchmarkUri{uri}, parsed.value(),
                          {.on_illegal = looptree::OnIllegal::kSkip})
      .value()
      .tree;
}

SamplingPolicy Policy(CacheState cache) {
  SamplingPolicy policy;
  policy.least_samples = 5;
  policy.min_repetition_ns = 5'000'000;
  policy.precision = 0.002;
  policy.budget_ns = 300'000'000;
  policy.patience_ns = 2'000'000'000;
  policy.cache = cache;
  return policy;
}

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

std::string StateText(const SensorReading& reading) {
  if (reading == SensorReading{}) return "-";
  return fmt::format("{:.0f} MHz, {:.0f} C, {:.0f} W{}{}", reading.clock_mhz, reading.temperature_c,
                     reading.power_w, reading.throttle_reasons == 0 ? "" : ", ",
                     ThrottleText(reading.throttle_reasons));
}

// Loaded anew, run once, and timed.
std::expected<DeviceSamples, Failure> MeasureTree(const Bench& bench,
                                                  const looptree::LoopTree& tree,
                                                  const SamplingPolicy& policy) {
  LF_TRY(const GpuKernel kernel, bench.compiler.Compile(tree));
  LF_TRY(const std::string code, CodeFor(bench, kernel));
  LF_TRY(const auto loaded, bench.device.Load(kernel, code));
  LF_TRY_VOID(bench.device.Run(*loaded, SmallIntegers(tree.program(), 1)));
  return TakeDeviceSamples(bench.device, *loaded, policy, bench.sensors);
}

int RunTiming(const Bench& bench, const Options& options) {
  int failed = 0;
  const auto copy = bench.device.TimeCopies(kCopiedBytes, 20);
  fmt::print("\n## Timing (the device's own clock, batches of at least 5 ms)\n\n");
  if (copy) {
    fmt::print(
        "Peer: a copy of {} MB within the device's memory, read and written: {:.1f} GB/s\n\n",
        kCopiedBytes / 1'000'000, 2.0 * kCopiedBytes * 20 / *copy);
  }
  fmt::print(
      "| benchmark | actions | cache | us | fastest to slowest | GFLOP/s | GB/s of tensors | to "
      "the "
      "copy | batches, throttled | device |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Schedule& schedule : kTimed) {
    if (schedule.size > options.largest) continue;
    const looptree::LoopTree tree = Walked(schedule.uri, schedule.actions);
    for (const CacheState cache : {CacheState::kWarm, CacheState::kCold}) {
      const char* const name = cache == CacheState::kWarm ? "warm" : "cold";
      const auto taken = MeasureTree(bench, tree, Policy(cache));
      if (!taken) {
        ++failed;
        fmt::print("| {} | {} | {} | FAILED: {} | | | | | | |\n", schedule.uri, schedule.actions,
                   name, taken.error().message);
        continue;
      }
      const std::vector<double>& ns = taken->samples.ns;
      const double median = MedianOf(ns);
      const double rate = static_cast<double>(looptree::TensorBytes(tree.program())) / median;
      fmt::print("| {} | {} | {} | {:.2f} | {:.4f} | {:.1f} | {:.1f} | {:.3f} | {}{}, {} | {} |\n",
                 schedule.uri, schedule.actions, name, median / 1e3,
                 (std::ranges::max(ns) - std::ranges::min(ns)) / median,
                 static_cast<double>(looptree::FlopCount(tree.program())) / median, rate,
                 copy ? rate / (2.0 * kCopiedBytes * 20 / *copy) : 0, ns.size(),
                 taken->is_batched ? " of graphs" : "", taken->throttled, StateText(taken->after));
    }
  }
  return failed;
}

// ---- the best schedule found, beside cuBLAS

// What some elements of the product are, by themselves: for sizes that a host takes minutes for.
std::string CheckSome(const std::vector<looptree::Tensor>& inputs, const looptree::Tensor& product,
                      int size) {
  SplitMix64 random(5);
  const auto n = static_cast<std::size_t>(size);
  for (int i = 0; i < 512; ++i) {
    const std::size_t row = random.Below(n);
    const std::size_t column = random.Below(n);
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) {
      sum += double{inputs[0][row * n + k]} * double{inputs[1][k * n + column]};
    }
    if (double{product[row * n + column]} != sum) {
      return fmt::format("element {}, {}: {} instead of {}", row, column, product[row * n + column],
                         sum);
    }
  }
  return "";
}

int RunSearch(const Bench& bench, const Options& options) {
  int failed = 0;
  const auto cublas = CublasPeer::Open(bench.driver);
  fmt::print("\n## Best schedule found in {} s, beside {}\n\n", options.search_seconds,
             cublas ? (*cublas)->version() + ", float32, TF32 off"
                    : "no peer (" + cublas.error().message + ")");
  fmt::print(
      "| size | tried, failed | actions | us | GFLOP/s | cuBLAS GFLOP/s | ratio |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const int size : {64, 1024, 2048, 4096}) {
    if (size > options.largest || (size == 64 && options.largest > 64)) continue;
    const std::string uri = fmt::format("benchmark://mm-v0/mm{}_{}_{}", size, size, size);
    const auto inputs = SmallIntegers(Walked(uri.c_str(), "").program(), 1);
    const auto time_tree = [&](const looptree::LoopTree& tree) -> std::expected<double, Failure> {
      LF_TRY(const GpuKernel kernel, bench.compiler.Compile(tree));
      LF_TRY(const std::string code, CodeFor(bench, kernel));
      LF_TRY(const auto loaded, bench.device.Load(kernel, code));
      LF_TRY(const auto outputs, bench.device.Run(*loaded, inputs));
      if (const std::string wrong = CheckSome(inputs, outputs[0], size); !wrong.empty()) {
        return std::unexpected(Failure{.code = FailureCode::kWrongOutput, .message = wrong});
      }
      SamplingPolicy policy = Policy(CacheState::kWarm);
      policy.min_repetition_ns = 1'000'000;
      policy.budget_ns = 20'000'000;
      LF_TRY(const DeviceSamples taken,
             TakeDeviceSamples(bench.device, *loaded, policy, bench.sensors));
      return MedianOf(taken.samples.ns);
    };
    const auto found =
        SearchSchedule(size, options.seed, std::chrono::seconds(options.search_seconds), time_tree);
    if (!found) {
      ++failed;
      fmt::print("| {} | FAILED: {} | | | | | |\n", size, found.error().message);
      continue;
    }
    // Timed afresh, the peer between.
    const looptree::LoopTree tree = Walked(uri.c_str(), found->actions);
    const auto flop = static_cast<double>(looptree::FlopCount(tree.program()));
    std::vector<double> ours;
    std::vector<double> theirs;
    const auto timed = [&]() -> std::expected<void, Failure> {
      LF_TRY(const GpuKernel kernel, bench.compiler.Compile(tree));
      LF_TRY(const std::string code, CodeFor(bench, kernel));
      LF_TRY(const auto loaded, bench.device.Load(kernel, code));
      LF_TRY_VOID(bench.device.Run(*loaded, inputs));
      const std::vector<CudaAddress>& at = loaded->buffers();
      for (int round = 0; round < 6; ++round) {
        LF_TRY(const DeviceSamples taken,
               TakeDeviceSamples(bench.device, *loaded, Policy(CacheState::kWarm), bench.sensors));
        if (round > 0) ours.push_back(MedianOf(taken.samples.ns));
        if (!cublas) continue;
        const int runs = std::max(1, static_cast<int>(2e7 / MedianOf(taken.samples.ns)));
        LF_TRY(const double ns,
               bench.device.TimeQueued([&] { return (*cublas)->Start(size, at[0], at[1], at[2]); },
                                       runs));
        if (round > 0) theirs.push_back(ns / runs);
      }
      return {};
    }();
    if (!timed) {
      ++failed;
      fmt::print("| {} | FAILED: {} | | | | | |\n", size, timed.error().message);
      continue;
    }
    const double rate = flop / MedianOf(ours);
    const double peer = theirs.empty() ? 0 : flop / MedianOf(theirs);
    fmt::print("| {} | {}, {} | {} | {:.2f} | {:.1f} | {} | {} |\n", size, found->tried,
               found->failed, found->actions, MedianOf(ours) / 1e3, rate,
               peer > 0 ? fmt::format("{:.1f}", peer) : "-",
               peer > 0 ? fmt::format("{:.3f}", rate / peer) : "-");
  }
  return failed;
}

// ---- the same again

int RunRepeats(const Bench& bench, const Options& options) {
  fmt::print("\n## A/A: one schedule {} times, each loaded anew\n\n", options.repeats);
  int failed = 0;
  for (const Schedule& schedule :
       {Schedule{"benchmark://loop_tool-cuda-v0/1048576", "", 1024},
        Schedule{"benchmark://mm-v0/mm1024_1024_1024", "swap_down", 1024},
        Schedule{"benchmark://mm-v0/mm64_64_64", "swap_down", 64}}) {
    if (schedule.size > options.largest) continue;
    const looptree::LoopTree tree = Walked(schedule.uri, schedule.actions);
    std::vector<double> medians;
    for (int i = 0; i < options.repeats; ++i) {
      const auto taken = MeasureTree(bench, tree, Policy(CacheState::kWarm));
      if (!taken) {
        fmt::print("- {}: FAILED: {}\n", schedule.uri, taken.error().message);
        ++failed;
        break;
      }
      medians.push_back(MedianOf(taken->samples.ns));
    }
    if (medians.empty()) continue;
    const double median = MedianOf(medians);
    std::vector<double> apart;
    for (const double ns : medians) apart.push_back(std::abs(ns / median - 1));
    std::ranges::sort(apart);
    fmt::print(
        "- {} {}: {:.2f} us; from their median by {:.4f} in the median, {:.4f} at the 90th "
        "percentile, {:.4f} at most\n",
        schedule.uri, schedule.actions, median / 1e3, MedianOf(apart), apart[apart.size() * 9 / 10],
        apart.back());
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

int CheckCanary(const Bench& bench) {
  const auto canary = MakeGpuCanary(bench.arch);
  if (!canary) return kFailed;
  const auto code = CodeFor(bench, canary->kernel);
  if (!code) return kFailed;
  const auto checked = bench.device.Check(canary->kernel, *code, canary->inputs, canary->outputs);
  if (checked) return 0;
  fmt::print("\nTHE CANARY FAILED: {}\n", checked.error().message);
  return kFailed;
}

enum class Depth { kAll, kConformance };

int Report(CudaDriver& driver, const Options& options, Depth depth) {
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
  if (facts.is_fake) {
    fmt::print(
        "**A LIBRARY OF LOOPFLEET'S TESTS STANDS IN THE PLACE OF THE DRIVER. THERE IS NO GPU, "
        "AND NO FIGURE BELOW IS ONE OF A GPU.**\n\n");
  }
  fmt::print(
      "# GPU report\n\n| | |\n|---|---|\n| device | {}, {} |\n| multiprocessors, memory, L2 | {}, "
      "{} MiB, {} KiB |\n"
      "| driver | CUDA {}.{} |\n| assembler | {} |\n| compiler | LLVM {}, {} |\n",
      facts.name, arch.Name(), facts.multiprocessors, facts.memory_bytes >> 20,
      facts.l2_bytes >> 10, facts.driver_version / 1000, facts.driver_version % 1000 / 10,
      assembler ? (*assembler)->Version() : "the driver's (" + assembler.error().message + ")",
      GpuCompilerFacts().llvm, GpuCompilerFacts().revision);
  auto sensors = OpenNvml(facts.bus_id);
  fmt::print("| sensors | {} |\n", sensors ? "driver " + (*sensors)->DriverVersion() + ", " +
                                                 StateText((*sensors)->Read())
                                           : "none (" + sensors.error().message + ")");
  const Bench bench{.driver = driver,
                    .device = **device,
                    .arch = arch,
                    .compiler = **compiler,
                    .assembler = assembler ? assembler->get() : nullptr,
                    .sensors = sensors ? sensors->get() : nullptr};
  int failed = 0;
  if (depth == Depth::kAll) {
    if (const auto peaks = MeasurePeaks(**device)) {
      fmt::print("| peaks | {:.2f} TFLOP/s of multiply-adds, {:.1f} GB/s copied |\n",
                 peaks->flop_per_second * 1e-12, peaks->read_bytes_per_second * 1e-9);
    } else {
      ++failed;
      fmt::print("| peaks | FAILED: {} |\n", peaks.error().message);
    }
  }
  failed += CheckCanary(bench);
  failed += RunConformance(bench, options);
  if (depth == Depth::kAll && !(*device)->lost()) {
    failed += RunTiming(bench, options);
    failed += RunSearch(bench, options);
    failed += RunRepeats(bench, options);
  }
  return failed == 0 ? 0 : kFailed;
}

// Conformance again under each tool of NVIDIA's sanitizer, where it is there.
int RunSanitizer(const Options& options) {
  fmt::print("\n## compute-sanitizer\n\n");
  if (std::system("compute-sanitizer --version > /dev/null 2>&1") != 0) {
    fmt::print("NOT TESTED: there is no compute-sanitizer in PATH\n");
    return 0;
  }
  std::array<char, 4096> self{};
  if (::readlink("/proc/self/exe", self.data(), self.size() - 1) <= 0) return kFailed;
  int failed = 0;
  for (const char* tool : {"memcheck", "racecheck", "synccheck"}) {
    std::fflush(stdout);
    const std::string command = fmt::format(
        "compute-sanitizer --tool {} --error-exitcode 9 '{}' --only-trees 20 --device {} 2>&1",
        tool, self.data(), options.device);
    const int status = std::system(command.c_str());
    const bool is_clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    fmt::print("- {} {}\n", tool, is_clean ? "clean" : "NOT CLEAN");
    if (!is_clean) ++failed;
  }
  return failed;
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--device") options.device = std::atoi(argv[i + 1]);
    if (flag == "--trees") options.trees = std::atoi(argv[i + 1]);
    if (flag == "--seed") options.seed = static_cast<std::uint64_t>(std::atoll(argv[i + 1]));
    if (flag == "--fault") options.fault = argv[i + 1];
    if (flag == "--only-trees") options.only_trees = std::atoi(argv[i + 1]);
    if (flag == "--largest") options.largest = std::atoi(argv[i + 1]);
    if (flag == "--search-seconds") options.search_seconds = std::atoi(argv[i + 1]);
    if (flag == "--repeats") options.repeats = std::max(1, std::atoi(argv[i + 1]));
  }
  auto driver = OpenCudaDriver();
  if (!driver) {
    fmt::print("NOTHING TESTED: {}\n", driver.error().message);
    return kNothingTested;
  }
  if (!options.fault.empty()) return RunFault(**driver, options);
  if (options.only_trees > 0) {
    Options only = options;
    only.trees = options.only_trees;
    return Report(**driver, only, Depth::kConformance);
  }
  const int reported = Report(**driver, options, Depth::kAll);
  if (reported == kNothingTested) return reported;
  const int faults = RunFaults("/proc/self/exe", options);
  // And the device is as before.
  const int sanitized = RunSanitizer(options);
  Options after = options;
  after.trees = 20;
  ++after.seed;
  fmt::print("\n# Once more, after them\n\n");
  const int again = Report(**driver, after, Depth::kConformance);
  const bool passed = reported == 0 && faults == 0 && sanitized == 0 && again == 0;
  fmt::print("\n{}\n", passed ? "ALL PASSED" : "SOMETHING FAILED");
  return passed ? 0 : kFailed;
}

}  // namespace
}  // namespace loopfleet::worker

int main(int argc, char** argv) { return loopfleet::worker::Main(argc, argv); }
