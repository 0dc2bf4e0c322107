// gpu_conformance: tests that need a GPU: that kernels compute the reference, how long they take,
// and that the worker survives hostile ones. Needs NVIDIA's driver. Uses nvJitLink if it is
// installed (otherwise the driver assembles), and NVML, cuBLAS and compute-sanitizer likewise. One
// executable that needs no library of ours, LLVM's or C++'s: tests/gpu/run.sh, docs/GPU.md.
//
//   gpu_conformance [--parts device,conformance,...] [--json FILE] [--seconds 570] [--device 0]
//                   [--trees 500] [--seed 1] [--largest 4096] [--search-seconds 60] [--repeats 100]
//   gpu_conformance --alone PART --json FILE ...             one part, in this process
//   gpu_conformance --fault NAME [--device 0]                one hostile kernel, in this process
//   gpu_conformance --only-trees 20                          20 random trees, in this process
//
// The report goes to standard output as Markdown, and to FILE as JSON (report.h). Each part runs in
// a separate process, so the report survives whatever the driver does in one of them. --seconds: a
// part that has not begun by then is reported as a failure, and one that has not ended soon after
// is killed. --largest skips products of larger matrices, and additions of more than its square.
// Exit codes: 0 all passed, 1 something failed, 2 a wrong flag, 77 no CUDA device, nothing tested.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/job/loop_schedule.h"
#include "tests/gpu/children_part.h"
#include "tests/gpu/device_bench.h"
#include "tests/gpu/options.h"
#include "tests/gpu/report.h"
#include "tests/gpu/timed_parts.h"
#include "tests/unit/worker/lowering/fuzz_case.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "worker/gpu/device/cuda_driver.h"
#include "worker/gpu/device/gpu_canary.h"
#include "worker/gpu/device/gpu_device.h"
#include "worker/gpu/device/gpu_meter.h"
#include "worker/gpu/device/gpu_probe.h"

namespace loopfleet::worker {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kNothingTested = 77;

// ---- random trees

// Empty if the device computes the reference.
std::string CheckTree(const DeviceBench& bench, const looptree::LoopTree& tree,
                      const std::vector<looptree::Tensor>& inputs,
                      const looptree::Reference& reference) {
  const auto kernel = bench.compiler.Compile(tree);
  if (!kernel.has_value()) return kernel.error().message;
  const auto code = CodeFor(bench, *kernel);
  if (!code) return code.error().message;
  const auto loaded = bench.device.Load(*kernel, *code);
  if (!loaded) return loaded.error().message;
  const auto outputs = bench.device.Run(**loaded, inputs);
  if (!outputs) return outputs.error().message;
  return Difference(*outputs, reference);
}

void RunConformance(const DeviceBench& bench, const Options& options) {
  FuzzCases cases(options.seed);
  CachedReference references;
  int right = 0;
  for (int i = 0; i < options.trees && !bench.device.lost(); ++i) {
    const FuzzCase fuzz = cases.Next();
    const auto replayed = ReplayJob(fuzz.job);
    if (!replayed) continue;
    const auto& [inputs, reference] = references.Of(replayed->tree.program(), fuzz.input_seed);
    const std::string problem = CheckTree(bench, replayed->tree, inputs, reference);
    if (!problem.empty()) {
      bench.report.Fail(fmt::format("{}: {}", problem, ToLine(fuzz)));
    } else {
      ++right;
    }
  }
  bench.report.Row({{"trees_right", right}});
  bench.report.Line("{} random trees right", right);
  if (right == 0) bench.report.Fail("no tree was right");
}

// ---- hostile kernels, each in a separate process

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
    // The store keeps the loop from being optimised away. The fake driver recognises this kernel by
    // the size of its output, because it cannot stop an endless one either.
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

// Runs one hostile kernel in this process, which ends with it.
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
      std::string code = HostilePtx(fault);
      if (const auto assembler = OpenNvJitLink()) {
        auto cubin = (*assembler)->Assemble(code, GpuArch{(*device)->facts().compute_capability});
        if (cubin) code = std::move(cubin->bytes);
      }
      LF_TRY(const auto loaded, (*device)->Load(kernel, code));
      LF_TRY_VOID((*device)->Run(*loaded, {}));
      return {};
    }();
    const bool right = !ran.has_value() && ran.error().code == fault.expected;
    fmt::print("{}: {}\n", ran.has_value() ? "it ran" : InfoOf(ran.error().code).name,
               ran.has_value() ? "" : ran.error().message);
    std::fflush(stdout);
    // Skips destructors, which would wait for a running kernel.
    ::_exit(right ? 0 : kFailed);
  }
  fmt::print(stderr, "gpu_conformance: there is no fault '{}'\n", options.fault);
  return kUsage;
}

struct Ran {
  int status = -1;  // exit status; -1: no normal exit
  std::string said;
};

// Runs a shell command, killed after `most_seconds`.
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

// Runs each hostile kernel in a separate process, as a worker would. The next process opens the
// device again.
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

// Repeats conformance under each tool of NVIDIA's compute-sanitizer, if it is installed.
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
        RunCommand(fmt::format("{} --tool {} --report-api-errors no --error-exitcode 9 {} "
                               "--only-trees 20 --device {}",
                               program, tool, OwnPath(), options.device),
                   kMostSeconds);
    report.Row({{"tool", tool}, {"clean", ran.status == 0}, {"exit", ran.status}});
    report.Line("- {}: {}", tool, ran.status == 0 ? "clean" : "NOT CLEAN");
    if (ran.status != 0)
      report.Fail(fmt::format("{} ended with {}: {}", tool, ran.status, ran.said));
  }
}

// ---- the device

void CheckCanary(const DeviceBench& bench) {
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

void RunDevice(const DeviceBench& bench, const Options&) {
  const CudaDriver::Facts& facts = bench.device.facts();
  Report& report = bench.report;
  if (!bench.missing.empty()) report.Skip(bench.missing);
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
  if (const auto peaks = MeasurePeaks(bench.device, bench.assembler)) {
    fact("peaks", fmt::format("{:.2f} TFLOP/s of multiply-adds, {:.1f} GB/s copied",
                              peaks->flop_per_second * 1e-12, peaks->read_bytes_per_second * 1e-9));
  } else {
    report.Fail("peaks: " + peaks.error().message);
  }
  report.Line("");
  CheckCanary(bench);
}

void RunAfter(const DeviceBench& bench, const Options& options) {
  Options after = options;
  after.trees = 20;
  ++after.seed;
  CheckCanary(bench);
  RunConformance(bench, after);
}

// ---- parts

struct Part {
  const char* title;
  // Exactly one of these is set.
  void (*on_device)(const DeviceBench&, const Options&) = nullptr;
  void (*without)(Report&, const Options&) = nullptr;
};

Part PartOf(std::string_view name) {
  if (name == "children") return {"Children as a worker confines them", nullptr, RunChildren};
  if (name == "device") return {"Device", RunDevice};
  if (name == "conformance") return {"Conformance", RunConformance};
  if (name == "timing") return {"Timing", RunTiming};
  if (name == "profile") return {"Profiles by roots", RunProfile};
  if (name == "search") return {"Best schedule found", RunSearch};
  if (name == "repeats") return {"A/A", RunRepeats};
  if (name == "faults") {
    return {"Hostile kernels, each in a process of its own", nullptr, RunFaults};
  }
  if (name == "sanitizer") return {"compute-sanitizer", nullptr, RunSanitizer};
  return {"Once more, after them", RunAfter};
}

// Runs a part in this process.
void RunPart(std::string_view name, const Options& options, Report& report) {
  const Part part = PartOf(name);
  report.Begin(std::string(name), part.title);
  if (part.without != nullptr) return part.without(report, options);
  const auto driver = OpenCudaDriver();
  if (!driver) return report.Fail(driver.error().message);
  WithDevice(**driver, options, report, [&](const DeviceBench& bench) {
    if (bench.device.facts().is_fake && !report.is_fake()) {
      return report.Fail("there is no GPU, but a library of tests");
    }
    part.on_device(bench, options);
  });
}

// Runs a part in a separate process, which prints to the same standard output.
void RunApart(const std::string& name, const Options& options, int most_seconds, Report& report) {
  const std::string json = fmt::format(
      "{}.{}.part", options.json.empty() ? fmt::format("/tmp/gpu-{}", ::getpid()) : options.json,
      name);
  std::remove(json.c_str());
  const std::string command = fmt::format(
      "exec timeout --kill-after=10 {} {} --alone {} --json '{}' --device {} --trees {} --seed {} "
      "--largest {} --search-seconds {} --repeats {} --fake {}",
      most_seconds, OwnPath(), name, json, options.device, options.trees, options.seed,
      options.largest, options.search_seconds, options.repeats, options.is_fake);
  std::fflush(nullptr);
  const int status = std::system(command.c_str());
  const Status taken = report.Take(json);
  std::remove(json.c_str());
  if (taken) return;
  report.Begin(name, PartOf(name).title);
  constexpr int kEnded = 124;  // exit code of timeout
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  report.Fail(code == kEnded ? fmt::format("it had not ended after {} s", most_seconds)
                             : fmt::format("it ended with {}: {}", code, taken.error().message));
}

void RunAll(const Options& options, Report& report) {
  constexpr int kMostSeconds = 900;  // for one part, without --seconds
  constexpr int kToEnd = 30;         // seconds beyond --seconds for a part that has begun
  const auto begun = std::chrono::steady_clock::now();
  for (const std::string_view part : kParts) {
    const std::string name(part);
    if (!options.parts.empty() && std::ranges::find(options.parts, name) == options.parts.end()) {
      continue;
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
    if (options.seconds > 0 && passed.count() > options.seconds) {
      report.Begin(name, PartOf(name).title);
      report.Fail(fmt::format("not begun: {:.0f} s had passed", passed.count()));
      continue;
    }
    const double left = options.seconds > 0 ? options.seconds - passed.count() + kToEnd
                                            : static_cast<double>(kMostSeconds);
    RunApart(name, options, static_cast<int>(left), report);
  }
}

int Main(int argc, char** argv) {
  Options options;
  if (!ParseOptions(argc, argv, options)) return kUsage;
  PrepareCudaEnvironment();
  const auto in_this_process = [&](std::string_view part) {
    Report report(options.json, options.is_fake ? Report::Device::kFake : Report::Device::kReal);
    RunPart(part, options, report);
    report.Close();
    return report.failures() == 0 ? 0 : kFailed;
  };
  // Before this process opens a driver: some parts need a process without one.
  if (!options.alone.empty()) return in_this_process(options.alone);
  const auto facts = [&]() -> Result<CudaDriver::Facts> {
    LF_TRY(const auto driver, OpenCudaDriver());
    if (!options.fault.empty()) std::_Exit(RunFault(*driver, options));
    LF_TRY(const auto device, GpuDevice::Open(*driver, {.ordinal = options.device, .clock = {}}));
    return device->facts();
  }();
  if (!facts) {
    fmt::print("NOTHING TESTED: {}\n", facts.error().message);
    return kNothingTested;
  }
  options.is_fake = facts->is_fake ? 1 : 0;
  if (options.only_trees > 0) {
    options.trees = options.only_trees;
    return in_this_process("conformance");
  }
  Report report(options.json, options.is_fake ? Report::Device::kFake : Report::Device::kReal);
  report.Line("# GPU report");
  if (report.is_fake()) {
    report.Line(
        "\n**A LIBRARY OF LOOPFLEET'S TESTS STANDS IN THE PLACE OF THE DRIVER. THERE IS NO GPU, "
        "AND NO FIGURE BELOW IS ONE OF A GPU.**");
  }
  RunAll(options, report);
  report.End();
  return report.failures() == 0 ? 0 : kFailed;
}

}  // namespace
}  // namespace loopfleet::worker

int main(int argc, char** argv) { return loopfleet::worker::Main(argc, argv); }
