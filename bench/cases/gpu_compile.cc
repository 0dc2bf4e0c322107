// Compile time from loop tree to cubin, beside NVRTC's from CUDA C++ of the same kernel to cubin.
// Needs nvJitLink and NVRTC, but no GPU.
//
//   bench_gpu_compile [--gpu-arch sm_90] [--rounds 5]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/peers/nvrtc_peer.h"
#include "bench/rigs/result_line.h"
#include "bench/rigs/stopwatch.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/datasets/benchmark.h"
#include "worker/gpu/codegen/device_planner.h"
#include "worker/gpu/codegen/gpu_compiler.h"
#include "worker/gpu/codegen/ptx_assembler.h"

namespace loopfleet::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Schedule {
  const char* uri;
  const char* actions;
};
// Tiles of every size that the walks of a search reach.
constexpr Schedule kSet[] = {
    {"benchmark://loop_tool-cuda-v0/1048576", ""},
    {"benchmark://loop_tool-cuda-v0/8388607", ""},
    {"benchmark://mm-v0/mm256_256_256", ""},
    {"benchmark://mm-v0/mm1024_1024_1024", ""},
    {"benchmark://mm-v0/mm1024_1024_1024", "swap_down"},
    {"benchmark://mm-v0/mm100_100_100", "swap_down"},
    {"benchmark://mm-v0/mm64_64_64", "swap_down"},
    {"benchmark://mm-v0/mm1024_1024_1024", "split_64,down,swap_down"},
    {"benchmark://mm-v0/mm1024_1024_1024", "split_32,down,swap_down"},
    {"benchmark://mm-v0/mm512_512_512", "split_16,down,swap_down"},
    {"benchmark://mm-v0/mm512_512_512", "split_8,down,swap_down"},
    {"benchmark://mm-v0/mm1000_1000_1000", "split_64,down,swap_down"},
};

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Result<looptree::LoopTree> TreeOf(const Schedule& schedule) {
  const auto actions = looptree::ParseActionList(schedule.actions);
  if (!actions) return Fail(ErrorKind::kInvalid, actions.error().message);
  auto replayed = looptree::Replay(looptree::BenchmarkUri{schedule.uri}, *actions);
  if (!replayed) return Fail(ErrorKind::kInvalid, replayed.error().message);
  return replayed->tree;
}

Status Run(worker::GpuArch arch, int rounds) {
  LF_TRY(const auto assembler, worker::OpenNvJitLink());
  LF_TRY(const Nvrtc nvrtc, Nvrtc::Open());
  LF_TRY(const auto compiler, worker::GpuCompiler::Create({.arch = arch, .limits = {}}));
  std::vector<double> ours;
  std::vector<double> theirs;
  std::vector<double> ratios;
  for (const Schedule& schedule : kSet) {
    LF_TRY(const looptree::LoopTree tree, TreeOf(schedule));
    const auto device = worker::PlanDevice(tree);
    if (!device) return Fail(ErrorKind::kInvalid, device.error().message);
    LF_TRY(const std::string source, CudaSource(*device));
    std::vector<double> ptx_ms;
    std::vector<double> our_ms;
    std::vector<double> their_ms;
    // The first round warms both up and is not counted.
    for (int round = 0; round <= rounds; ++round) {
      const auto start = Clock::now();
      const auto kernel = compiler->Compile(tree);
      if (!kernel) return Fail(ErrorKind::kInvalid, kernel.error().message);
      const double ptx = Since<std::milli>(start);
      LF_TRY(const worker::Cubin cubin, assembler->Assemble(kernel->ptx, arch));
      const double whole = Since<std::milli>(start);
      const auto peer_start = Clock::now();
      LF_TRY(const std::string peer_cubin, nvrtc.Compile(source, arch));
      const double peer = Since<std::milli>(peer_start);
      if (round == 0) continue;
      ptx_ms.push_back(ptx);
      our_ms.push_back(whole);
      their_ms.push_back(peer);
    }
    ours.push_back(Median(our_ms));
    theirs.push_back(Median(their_ms));
    ratios.push_back(theirs.back() / ours.back());
    Print({.bench = "gpu_compile",
           .name = fmt::format("tree to cubin, {} [{}]", schedule.uri, schedule.actions),
           .value = ours.back(),
           .unit = "ms",
           .peer = nvrtc.version() + ", CUDA C++ of the same kernel to cubin",
           .peer_value = theirs.back(),
           .details = {{"gpu_arch", arch.Name()},
                       {"assembler", assembler->Version()},
                       {"ptx_ms", Median(ptx_ms)},
                       {"stages", DescribeStages(*device)}}});
  }
  Print({.bench = "gpu_compile",
         .name = "tree to cubin, median over the set",
         .value = Median(ours),
         .unit = "ms",
         .peer = nvrtc.version() + ", CUDA C++ of the same kernel to cubin",
         .peer_value = Median(theirs),
         .details = {{"gpu_arch", arch.Name()}, {"median_of_ratios", Median(ratios)}}});
  return {};
}

int Main(int argc, char** argv) {
  worker::GpuArch arch{90};
  int rounds = 5;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--gpu-arch") {
      const auto parsed = worker::ParseGpuArch(argv[i + 1]);
      if (!parsed) {
        fmt::print(stderr, "bench_gpu_compile: {}\n", parsed.error().message);
        return 2;
      }
      arch = *parsed;
    } else if (flag == "--rounds") {
      rounds = std::max(1, std::atoi(argv[i + 1]));
    } else {
      fmt::print(stderr, "usage: bench_gpu_compile [--gpu-arch sm_90] [--rounds 5]\n");
      return 2;
    }
  }
  if (const Status ran = Run(arch, rounds); !ran) {
    fmt::print(stderr, "bench_gpu_compile: {}\n", ran.error().message);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace loopfleet::bench

int main(int argc, char** argv) { return loopfleet::bench::Main(argc, argv); }
