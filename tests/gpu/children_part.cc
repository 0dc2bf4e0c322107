#include "tests/gpu/children_part.h"

#include <fmt/format.h>

#include <chrono>
#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "tests/gpu/device_bench.h"
#include "worker/gpu/device/gpu_children.h"
#include "worker/gpu/device/gpu_probe.h"
#include "worker/gpu/device/gpu_process.h"
#include "worker/processes/compiler_process.h"
#include "worker/processes/reference_process.h"
#include "worker/sandbox/syscall_filter.h"
#include "worker/timing/statistics.h"

namespace loopfleet::worker {
namespace {

constexpr std::chrono::seconds kCompileLimit{60};
constexpr std::size_t kMostCodeBytes = std::size_t{64} << 20;

struct Tree {
  const char* uri;
  const char* actions;
};
constexpr Tree kTrees[] = {
    {"benchmark://loop_tool-cuda-v0/4096", ""},
    {"benchmark://mm-v0/mm64_64_64", "swap_down"},
    {"benchmark://mm-v0/mm100_60_36", ""},
};

struct Children {
  CompilerProcess compiler;
  ReferenceProcess reference;
  GpuProcess device;
};

// Compiles, runs, verifies, times and verifies again, as for a job. Returns the median in
// nanoseconds.
std::expected<double, Failure> Evaluate(Children& children, const looptree::LoopTree& tree) {
  LF_TRY(const CompiledKernel compiled, children.compiler.Compile(tree, kMostCodeBytes));
  LF_TRY(const std::shared_ptr<const Workload> workload,
         MakeWorkload(tree, {1},
                      [&](const auto& of, InputSeed seed, const SharedMemory& inputs,
                          const SharedMemory& reference) {
                        return children.reference.Compute(of, seed, inputs, reference);
                      }));
  std::vector<std::uint64_t> outputs;
  for (const BufferSpec& spec : compiled.kernel.buffers) {
    if (spec.role == BufferSpec::Role::kOutput) outputs.push_back(spec.element_count);
  }
  GuardedBufferPool arenas({});
  auto arena = arenas.Take(LayOut(outputs, workload->layout.buffers.size()));
  if (!arena) {
    return std::unexpected(Failure{.code = FailureCode::kRunOom, .message = arena.error().message});
  }
  LF_TRY_VOID(children.device.EnsureReady());
  (*arena)->Poison();
  LF_TRY(const Nanos took, children.device.Run({.image = compiled.code.bytes,
                                                .specs = compiled.kernel.buffers,
                                                .workload = workload,
                                                .arena = *arena}));
  LF_TRY_VOID((*arena)->Check(workload->expected));
  (*arena)->Poison();
  LF_TRY(const DeviceSamples samples, children.device.Time(BenchPolicy(CacheState::kWarm), took));
  LF_TRY_VOID((*arena)->Check(workload->expected));
  return MedianOf(samples.samples.ns);
}

}  // namespace

void RunChildren(Report& report, const Options& options) {
  const Isolation isolation = ProbeIsolation();
  report.Line("Compilers: {}. Assembler, device and limits as a worker has them.\n",
              IsolationName(isolation));
  if (isolation != Isolation::kSeccomp) report.Skip("there is no filter of system calls here");
  auto probe = ProbeGpu(options.device);
  if (!probe) return report.Fail(probe.error().message);
  report.Row({{"assembler", probe->assembler_name}, {"why_driver", probe->why_driver}});
  report.Line("- probe: right; {} assembles{}{}", probe->assembler_name,
              probe->why_driver.empty() ? "" : ": ", probe->why_driver);
  const GpuArch arch{probe->facts.compute_capability};
  auto canary = MakeGpuCanary(arch);
  if (!canary) return report.Fail(canary.error().message);
  canary->code = probe->canary_code;
  auto fork_server = ForkServer::Start(GpuChildPrograms({.ordinal = options.device,
                                                         .arch = arch,
                                                         .assembler = probe->assembler,
                                                         .canary = *std::move(canary),
                                                         .isolation = isolation}));
  if (!fork_server) return report.Fail(fork_server.error().message);
  const RestartListener on_restart = [&](ChildRole role, ExitReason::Cause) {
    report.Fail(fmt::format("the child '{}' ended", ChildRoleName(role)));
  };
  Children children{.compiler = {**fork_server, kCompileLimit, on_restart},
                    .reference = {**fork_server, kCompileLimit, on_restart},
                    .device = {**fork_server, {}, on_restart}};
  for (const Tree& tree : kTrees) {
    const auto ns = Evaluate(children, Walked(tree.uri, tree.actions));
    report.Row({{"benchmark", tree.uri},
                {"actions", tree.actions},
                {"right", ns.has_value()},
                {"ns", ns ? Report::Json(*ns) : Report::Json(nullptr)}});
    if (ns) {
      report.Line("- {} {}: right, {:.2f} us", tree.uri, tree.actions, *ns / 1e3);
    } else {
      report.Fail(fmt::format("{} {}: {}: {}", tree.uri, tree.actions, InfoOf(ns.error().code).name,
                              ns.error().message));
    }
  }
}

}  // namespace loopfleet::worker
