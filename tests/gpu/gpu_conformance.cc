// What only a GPU can show: that kernels compute there what the program means, how long they take,
// and that hostile ones are survived. Needs NVIDIA's driver; nvJitLink if it is there, else the
// driver assembles; NVML, cuBLAS and compute-sanitizer where they are. One executable without a
// library of ours, LLVM's or C++'s beside it: tests/gpu/run.sh, docs/GPU.md.
//
//   gpu_conformance [--parts device,conformance,...] [--json FILE] [--seconds 570] [--device 0]
//                   [--trees 500] [--seed 1] [--largest 4096] [--search-seconds 60] [--repeats 100]
//   gpu_conformance --fault NAME [--device 0]                one hostile kernel, in this process
//   gpu_conformance --only-trees 20                          as under a sanitizer
//
// The report goes to standard output as Markdown, and to FILE as JSON (report.h). --seconds: what
// is not begun by then is left out, and said to be. --largest leaves out products of larger
// matrices, and additions of more than its square. Exit codes: 0 all passed, 1 something failed, 2
// a wrong flag, 77 there is no CUDA device: nothing was tested.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/base/result.h"
#include "common/looptree/benchmark.h"
#include "common/looptree/walk.h"
#include "tests/gpu/cublas_peer.h"
#include "tests/gpu/report.h"
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
constexpr int kUsage = 2;
constexpr int kNothingTested = 77;

using Json = Report::Json;

// In this order.
constexpr std::string_view kParts[] = {"device",  "conformance", "timing",    "search",
                                       "repeats", "faults",      "sanitizer", "after"};

struct Options {
  int device = 0;
  std::string parts;  // "": all
  std::string json;
  double seconds = 0;  // 0: no end
  int trees = 500;
  std::uint64_t seed = 1;
  std::string fault;
  int only_trees = 0;
  int largest = 4096;
  int search_seconds = 60;
  int repeats = 100;
};

struct Bench {
  Report& report;
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

void RunConformance(const Bench& bench, const Options& options) {
  FuzzCases cases(options.seed);
  CachedReference references;
  int right = 0;
  int refused = 0;
  for (int i = 0; i < options.trees && !bench.device.lost(); ++i) {
    const FuzzCase fuzz = cases.Next();
    const auto replayed = ReplayJob(fuzz.job);
    if (!replayed) continue;
    const auto& [inputs, reference] = references.Of(replayed->tree.program(), fuzz.input_seed);
    const int before = refused;
    const std::string problem = CheckTree(bench, replayed->tree, inputs, reference, refused);
    if (!problem.empty()) {
      bench.report.Fail(fmt::format("{}: {}", problem, ToLine(fuzz)));
    } else if (refused == before) {
      ++right;
    }
  }
  bench.report.Row({{"trees_right", right}, {"refused_as_unrolled_too_far", refused}});
  bench.report.Line("{} random trees right, {} refused for being unrolled too far", right, refused);
  if (right == 0) bench.report.Fail("no tree was right");
}

struct Schedule {
  const char* uri;
  const char* actions;
  int size;  // of the matrices; of an addition, the root of how many
  bool judged_by_copy = false;
};
constexpr Schedule kTimed[] = {
    {"benchmark://loop_tool-cuda-v0/65536", "", 256},
    {"benchmark://loop_tool-cuda-v0/1048576", "", 1024},
    {"benchmark://loop_tool-cuda-v0/8388607", "", 2896, true},
    {"benchmark://loop_tool-cuda-v0/4096", "", 64},
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

// Bytes a nanosecond, read and written.
double CopyRate(const Bench& bench) {
  constexpr int kTimes = 20;
  const auto ns = bench.device.TimeCopies(kCopiedBytes, kTimes);
  return ns && *ns > 0 ? 2.0 * kCopiedBytes * kTimes / *ns : 0;
}

void RunTiming(const Bench& bench, const Options& options) {
  Report& report = bench.report;
  report.Line(
      "The device's own clock, batches of at least 5 ms. Peer: a copy of {} MB within the "
      "device's memory, before and after each.\n",
      kCopiedBytes / 1'000'000);
  report.Line(
      "| benchmark | actions | cache | us | fastest to slowest | GFLOP/s | GB/s of tensors | to "
      "the copy | batches, throttled | device |\n|---|---|---|---|---|---|---|---|---|---|");
  std::vector<Report::Goal> goals;
  for (const Schedule& schedule : kTimed) {
    if (schedule.size > options.largest) continue;
    const looptree::LoopTree tree = Walked(schedule.uri, schedule.actions);
    for (const CacheState cache : {CacheState::kWarm, CacheState::kCold}) {
      const char* const name = cache == CacheState::kWarm ? "warm" : "cold";
      const double copy_before = CopyRate(bench);
      const auto taken = MeasureTree(bench, tree, Policy(cache));
      if (!taken) {
        report.Fail(fmt::format("{} {} {}: {}", schedule.uri, schedule.actions, name,
                                taken.error().message));
        continue;
      }
      const double copy = (copy_before + CopyRate(bench)) / 2;
      const std::vector<double>& ns = taken->samples.ns;
      const double median = MedianOf(ns);
      const double rate = static_cast<double>(looptree::TensorBytes(tree.program())) / median;
      const double flops = static_cast<double>(looptree::FlopCount(tree.program())) / median;
      const double to_copy = copy > 0 ? rate / copy : 0;
      report.Line("| {} | {} | {} | {:.2f} | {:.4f} | {:.1f} | {:.1f} | {:.3f} | {}{}, {} | {} |",
                  schedule.uri, schedule.actions, name, median / 1e3,
                  (std::ranges::max(ns) - std::ranges::min(ns)) / median, flops, rate, to_copy,
                  ns.size(), taken->is_batched ? " of graphs" : "", taken->throttled,
                  StateText(taken->after));
      report.Row({{"benchmark", schedule.uri},
                  {"actions", schedule.actions},
                  {"cache", name},
                  {"samples_ns", ns},
                  {"gflop_per_second", flops},
                  {"gb_per_second", rate},
                  {"copy_gb_per_second", copy},
                  {"throttled", taken->throttled},
                  {"clock_mhz", taken->after.clock_mhz},
                  {"temperature_c", taken->after.temperature_c},
                  {"power_w", taken->after.power_w}});
      if (schedule.judged_by_copy && cache == CacheState::kWarm) {
        goals.push_back({.name = fmt::format("{} to a copy's bandwidth", schedule.uri),
                         .value = to_copy,
                         .goal = 0.95});
      }
    }
  }
  report.Line("");
  for (const Report::Goal& goal : goals) report.Judge(goal);
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

void RunSearch(const Bench& bench, const Options& options) {
  Report& report = bench.report;
  const auto cublas = CublasPeer::Open(bench.driver);
  report.Line("{} s for each size, beside {}.\n", options.search_seconds,
              cublas ? (*cublas)->version() + ", float32, TF32 off"
                     : "no peer (" + cublas.error().message + ")");
  if (!cublas) report.Skip("cuBLAS as peer: " + cublas.error().message);
  report.Line(
      "| size | tried, failed | actions | us | GFLOP/s | cuBLAS GFLOP/s | ratio |\n"
      "|---|---|---|---|---|---|---|");
  std::vector<Report::Goal> goals;
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
      report.Fail(fmt::format("{}: {}", size, found.error().message));
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
      report.Fail(fmt::format("{}: {}", size, timed.error().message));
      continue;
    }
    const double rate = flop / MedianOf(ours);
    const double peer = theirs.empty() ? 0 : flop / MedianOf(theirs);
    report.Line("| {} | {}, {} | {} | {:.2f} | {:.1f} | {} | {} |", size, found->tried,
                found->failed, found->actions, MedianOf(ours) / 1e3, rate,
                peer > 0 ? fmt::format("{:.1f}", peer) : "-",
                peer > 0 ? fmt::format("{:.3f}", rate / peer) : "-");
    report.Row({{"size", size},
                {"tried", found->tried},
                {"failed", found->failed},
                {"actions", found->actions},
                {"ns", ours},
                {"cublas_ns", theirs},
                {"gflop_per_second", rate},
                {"cublas_gflop_per_second", peer > 0 ? Json(peer) : Json(nullptr)}});
    if (peer > 0) {
      goals.push_back({.name = fmt::format("product of {}, to cuBLAS", size),
                       .value = rate / peer,
                       .goal = 0.7});
    }
  }
  report.Line("");
  for (const Report::Goal& goal : goals) report.Judge(goal);
}

// ---- the same again

void RunRepeats(const Bench& bench, const Options& options) {
  Report& report = bench.report;
  report.Line("One schedule {} times, each loaded anew.\n", options.repeats);
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
        report.Fail(fmt::format("{}: {}", schedule.uri, taken.error().message));
        break;
      }
      medians.push_back(MedianOf(taken->samples.ns));
    }
    if (medians.empty()) continue;
    const double median = MedianOf(medians);
    std::vector<double> apart;
    for (const double ns : medians) apart.push_back(std::abs(ns / median - 1));
    std::ranges::sort(apart);
    report.Line(
        "- {} {}: {:.2f} us; from their median by {:.4f} in the median, {:.4f} at the 90th "
        "percentile, {:.4f} at most",
        schedule.uri, schedule.actions, median / 1e3, MedianOf(apart), apart[apart.size() * 9 / 10],
        apart.back());
    report.Row({{"benchmark", schedule.uri}, {"actions", schedule.actions}, {"ns", medians}});
    report.Judge(
        {.name = fmt::format("{} {}: furthest from the median", schedule.uri, schedule.actions),
         .value = apart.back(),
         .bound = Report::Goal::Bound::kAtMost,
         .goal = 0.01});
  }
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
    // Its size is how the driver of the tests, which cannot end one either, knows it.
    {"endless", "L:\n  st.volatile.global.u32 [%rd1], %r1;\n  bra L;", 32,
     FailureCode::kRunTimeout},
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

// In this process, which ends with it.
int RunFault(CudaDriver& driver, const Options& options) {
  for (const Fault& fault : kFaults) {
    if (options.fault != fault.name) continue;
    auto device = GpuDevice::Open(
        driver, {.ordinal = options.device, .run_limit = std::chrono::milliseconds(2000)});
    if (!device) {
      fmt::print("{}\n", device.error().message);
      return kFailed;
    }
    GpuKernel kernel;
    kernel.launches = {{.symbol = "hostile", .blocks = 1, .threads = 32}};
    kernel.buffers = {{.role = BufferSpec::Role::kOutput, .element_count = fault.elements}};
    const auto ran = [&]() -> std::expected<void, Failure> {
      LF_TRY(const auto loaded, (*device)->Load(kernel, HostilePtx(fault)));
      LF_TRY_VOID((*device)->Run(*loaded, {}));
      return {};
    }();
    const bool right = !ran.has_value() && ran.error().code == fault.expected;
    fmt::print("{}: {}\n", ran.has_value() ? "it ran" : InfoOf(ran.error().code).name,
               ran.has_value() ? "" : ran.error().message);
    std::fflush(stdout);
    // Not through destructors: a running kernel would be waited for.
    ::_exit(right ? 0 : kFailed);
  }
  fmt::print(stderr, "gpu_conformance: there is no fault '{}'\n", options.fault);
  return kUsage;
}

struct Ran {
  int status = -1;  // as of an exit; -1: none
  std::string said;
};

// A command of the shell, ended after so many seconds.
Ran RunCommand(const std::string& command, int most_seconds) {
  const std::string bounded =
      fmt::format("exec timeout --kill-after=5 {} {} 2>&1", most_seconds, command);
  std::fflush(stdout);
  Ran ran;
  FILE* const pipe = ::popen(bounded.c_str(), "r");
  if (pipe == nullptr) return ran;
  std::array<char, 4096> part{};
  while (const std::size_t bytes = std::fread(part.data(), 1, part.size(), pipe)) {
    ran.said.append(part.data(), bytes);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) ran.status = WEXITSTATUS(status);
  return ran;
}

std::string OwnPath() {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  return size > 0 ? fmt::format("'{}'", path.data()) : "";
}

// Each in a process of its own, as a worker would; the device has to be well after each.
void RunFaults(Report& report, const Options& options) {
  constexpr int kMostSeconds = 60;
  for (const Fault& fault : kFaults) {
    const Ran ran =
        RunCommand(fmt::format("{} --fault {} --device {}", OwnPath(), fault.name, options.device),
                   kMostSeconds);
    report.Row({{"fault", fault.name},
                {"expected", InfoOf(fault.expected).name},
                {"said", ran.said},
                {"survived", ran.status == 0}});
    report.Line("- {} {}: {}", ran.status == 0 ? "right" : "WRONG", fault.name,
                ran.said.substr(0, ran.said.find('\n')));
    if (ran.status != 0) report.Fail(fmt::format("{} ended with {}", fault.name, ran.status));
  }
}

// Conformance again under each tool of NVIDIA's sanitizer, where it is there.
void RunSanitizer(Report& report, const Options& options) {
  constexpr int kMostSeconds = 120;
  std::string program;
  for (const char* place : {"compute-sanitizer", "/usr/local/cuda/bin/compute-sanitizer"}) {
    if (program.empty() && RunCommand(fmt::format("{} --version", place), 30).status == 0) {
      program = place;
    }
  }
  if (program.empty()) {
    return report.Skip("there is no compute-sanitizer in PATH or /usr/local/cuda/bin");
  }
  for (const char* tool : {"memcheck", "racecheck", "synccheck"}) {
    const Ran ran =
        RunCommand(fmt::format("{} --tool {} --error-exitcode 9 {} --only-trees 20 --device {}",
                               program, tool, OwnPath(), options.device),
                   kMostSeconds);
    report.Row({{"tool", tool}, {"clean", ran.status == 0}, {"exit", ran.status}});
    report.Line("- {}: {}", tool, ran.status == 0 ? "clean" : "NOT CLEAN");
    if (ran.status != 0)
      report.Fail(fmt::format("{} ended with {}: {}", tool, ran.status, ran.said));
  }
}

void CheckCanary(const Bench& bench) {
  const auto checked = [&]() -> std::expected<void, Failure> {
    auto canary = MakeGpuCanary(bench.arch);
    if (!canary) {
      return std::unexpected(
          Failure{.code = FailureCode::kCompileError, .message = canary.error().message});
    }
    LF_TRY(const std::string code, CodeFor(bench, canary->kernel));
    return bench.device.Check(canary->kernel, code, canary->inputs, canary->outputs);
  }();
  if (!checked) bench.report.Fail("the canary: " + checked.error().message);
}

void RunDevice(const Bench& bench) {
  const CudaDriver::Facts& facts = bench.device.facts();
  Report& report = bench.report;
  report.Line("| | |\n|---|---|");
  const auto fact = [&](const char* name, const std::string& value) {
    report.Line("| {} | {} |", name, value);
    report.Row({{"fact", name}, {"value", value}});
  };
  fact("device", fmt::format("{}, {}", facts.is_fake ? "fake" : facts.name, bench.arch.Name()));
  fact("multiprocessors", fmt::format("{}", facts.multiprocessors));
  fact("memory, L2", fmt::format("{} MiB, {} KiB", facts.memory_bytes >> 20, facts.l2_bytes >> 10));
  fact("driver",
       fmt::format("CUDA {}.{}", facts.driver_version / 1000, facts.driver_version % 1000 / 10));
  fact("assembler", bench.assembler != nullptr ? bench.assembler->Version() : "the driver's");
  fact("compiler",
       fmt::format("LLVM {}, {}", GpuCompilerFacts().llvm, GpuCompilerFacts().revision));
  fact("sensors", bench.sensors == nullptr
                      ? "none"
                      : fmt::format("driver {}, {}", bench.sensors->DriverVersion(),
                                    StateText(bench.sensors->Read())));
  if (const auto peaks = MeasurePeaks(bench.device)) {
    fact("peaks", fmt::format("{:.2f} TFLOP/s of multiply-adds, {:.1f} GB/s copied",
                              peaks->flop_per_second * 1e-12, peaks->read_bytes_per_second * 1e-9));
  } else {
    report.Fail("peaks: " + peaks.error().message);
  }
  report.Line("");
  CheckCanary(bench);
}

// The device with all that goes with it, for as long as `use` runs. False: it cannot be had, and
// `why` says so.
bool WithDevice(CudaDriver& driver, const Options& options, Report& report,
                const std::function<void(const Bench&)>& use, std::string& why) {
  auto device = GpuDevice::Open(driver, {.ordinal = options.device, .clock = {}});
  if (!device) {
    why = device.error().message;
    return false;
  }
  const GpuArch arch{(*device)->facts().compute_capability};
  auto compiler = GpuCompiler::Create({.arch = arch, .limits = {}});
  if (!compiler) {
    why = compiler.error().message;
    return false;
  }
  auto assembler = OpenNvJitLink();
  auto sensors = OpenNvml((*device)->facts().bus_id);
  if (!assembler) why += assembler.error().message;
  if (!sensors) why += (why.empty() ? "" : "; ") + sensors.error().message;
  use({.report = report,
       .driver = driver,
       .device = **device,
       .arch = arch,
       .compiler = **compiler,
       .assembler = assembler ? assembler->get() : nullptr,
       .sensors = sensors ? sensors->get() : nullptr});
  return true;
}

class Run {
 public:
  Run(CudaDriver& driver, const Options& options, Report& report)
      : driver_(driver), options_(options), report_(report) {}

  void All() {
    std::string missing;
    const bool had = WithDevice(
        driver_, options_, report_, [&](const Bench& bench) { OnDevice(bench, missing); }, missing);
    if (!had) report_.Fail(missing);
    Part("faults", "Hostile kernels, each in a process of its own",
         [&] { RunFaults(report_, options_); });
    Part("sanitizer", "compute-sanitizer", [&] { RunSanitizer(report_, options_); });
    Part("after", "Once more, after them", [&] {
      Options after = options_;
      after.trees = 20;
      ++after.seed;
      std::string why;
      if (!WithDevice(
              driver_, after, report_,
              [&](const Bench& bench) {
                CheckCanary(bench);
                RunConformance(bench, after);
              },
              why)) {
        report_.Fail(why);
      }
    });
  }

 private:
  // `missing`: what the device is used without.
  void OnDevice(const Bench& bench, const std::string& missing) {
    Part("device", "Device", [&] {
      if (!missing.empty()) report_.Skip(missing);
      RunDevice(bench);
    });
    const auto part = [&](std::string_view name, const char* title, const auto& run) {
      Part(name, title, [&] {
        if (bench.device.lost()) return report_.Fail("the device is lost since an earlier part");
        run(bench, options_);
      });
    };
    part("conformance", "Conformance", RunConformance);
    part("timing", "Timing", RunTiming);
    part("search", "Best schedule found", RunSearch);
    part("repeats", "A/A", RunRepeats);
  }

  void Part(std::string_view name, const char* title, const std::function<void()>& run) {
    const bool is_wanted =
        options_.parts.empty() ||
        fmt::format(",{},", options_.parts).find(fmt::format(",{},", name)) != std::string::npos;
    if (!is_wanted) return;
    report_.Begin(std::string(name), title);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun_;
    if (options_.seconds > 0 && passed.count() > options_.seconds) {
      return report_.Fail(fmt::format("not begun: {:.0f} s had passed", passed.count()));
    }
    run();
  }

  CudaDriver& driver_;
  const Options& options_;
  Report& report_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

// False: says what is wrong with them.
bool ParseOptions(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string_view flag = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : nullptr;
    const std::pair<std::string_view, int*> kNumbers[] = {
        {"--device", &options.device},         {"--trees", &options.trees},
        {"--only-trees", &options.only_trees}, {"--largest", &options.largest},
        {"--repeats", &options.repeats},       {"--search-seconds", &options.search_seconds}};
    const std::pair<std::string_view, std::string*> kTexts[] = {
        {"--fault", &options.fault}, {"--parts", &options.parts}, {"--json", &options.json}};
    bool is_known = false;
    for (const auto& [name, number] : kNumbers) {
      if (flag != name || value == nullptr) continue;
      *number = std::max(0, std::atoi(value));
      is_known = true;
    }
    for (const auto& [name, text] : kTexts) {
      if (flag != name || value == nullptr) continue;
      *text = value;
      is_known = true;
    }
    if (flag == "--seconds" && value != nullptr) {
      options.seconds = std::atof(value);
      is_known = true;
    }
    if (flag == "--seed" && value != nullptr) {
      options.seed = static_cast<std::uint64_t>(std::atoll(value));
      is_known = true;
    }
    if (!is_known) {
      fmt::print(stderr, "gpu_conformance: {} is no flag, or lacks its value\n", flag);
      return false;
    }
  }
  options.repeats = std::max(1, options.repeats);
  for (std::string rest = options.parts; !rest.empty();) {
    const std::string part = rest.substr(0, rest.find(','));
    rest.erase(0, part.size() + 1);
    if (std::ranges::find(kParts, part) == std::end(kParts)) {
      fmt::print(stderr, "gpu_conformance: there is no part '{}'; there are {}\n", part,
                 fmt::join(kParts, ", "));
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  Options options;
  if (!ParseOptions(argc, argv, options)) return kUsage;
  auto driver = OpenCudaDriver();
  if (!driver) {
    fmt::print("NOTHING TESTED: {}\n", driver.error().message);
    return kNothingTested;
  }
  if (!options.fault.empty()) return RunFault(**driver, options);
  bool is_fake = false;
  {
    auto device = GpuDevice::Open(**driver, {.ordinal = options.device, .clock = {}});
    if (!device) {
      fmt::print("NOTHING TESTED: {}\n", device.error().message);
      return kNothingTested;
    }
    is_fake = (*device)->facts().is_fake;
  }
  Report report(options.json, is_fake ? Report::Device::kFake : Report::Device::kReal);
  report.Line("# GPU report");
  if (is_fake) {
    report.Line(
        "\n**A LIBRARY OF LOOPFLEET'S TESTS STANDS IN THE PLACE OF THE DRIVER. THERE IS NO GPU, "
        "AND NO FIGURE BELOW IS ONE OF A GPU.**");
  }
  if (options.only_trees > 0) {
    options.parts = "conformance";
    options.trees = options.only_trees;
  }
  Run(**driver, options, report).All();
  report.End();
  return report.failures() == 0 ? 0 : kFailed;
}

}  // namespace
}  // namespace loopfleet::worker

int main(int argc, char** argv) { return loopfleet::worker::Main(argc, argv); }
