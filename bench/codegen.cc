// From tree to callable: how long compiling and linking take over the committed corpus, and how
// fast the kernels of a few named schedules are, beside the same loops in C through `cc -O3`. In
// one process and unconfined: only the compiler is measured.

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "bench/c_peer.h"
#include "bench/corpus.h"
#include "bench/result_line.h"
#include "client/scratch_dir.h"
#include "common/looptree/walk.h"
#include "worker/cpu/cpu_compiler.h"
#include "worker/cpu/linker.h"

namespace loopfleet::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kAlignment = 64;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Processor time of this thread: unlike the wall's, it does not count what others do beside it.
double ThreadMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

struct Toolchain {
  std::unique_ptr<worker::CpuCompiler> compiler;
  std::unique_ptr<worker::Linker> linker;
};

Result<Toolchain> MakeToolchain() {
  Toolchain tools;
  LF_TRY(tools.compiler, worker::CpuCompiler::Create());
  tools.linker = std::make_unique<worker::Linker>();
  return tools;
}

double AtShare(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

struct Timings {
  std::vector<double> total;
  std::vector<double> total_cpu;
  std::vector<double> link;
  std::size_t object_bytes = 0;
};

Result<void> Compile(Toolchain& tools, const JobSpec& job, Timings& timings) {
  const auto replayed = ReplayJob(job);
  if (!replayed) return Fail(ErrorKind::kInvalid, replayed.error().message);
  const double cpu_start = ThreadMilliseconds();
  const auto start = Clock::now();
  const auto kernel = tools.compiler->Compile(replayed->tree);
  if (!kernel) return Fail(ErrorKind::kInvalid, kernel.error().message);
  const auto compiled = Clock::now();
  LF_TRY(const auto linked, tools.linker->Link(kernel->object));
  timings.total.push_back(MillisecondsSince(start));
  timings.total_cpu.push_back(ThreadMilliseconds() - cpu_start);
  timings.link.push_back(MillisecondsSince(compiled));
  timings.object_bytes += kernel->object.size();
  return {};
}

Result<void> CompileCorpus(Toolchain& tools) {
  LF_TRY(const std::vector<JobSpec> jobs,
         ReadCorpus(LOOPFLEET_SOURCE_DIR "/bench/corpus/matmul_walks.jsonl"));
  std::map<std::string, Timings> by_benchmark;
  for (const JobSpec& job : jobs) {
    const auto* uri = std::get_if<looptree::BenchmarkUri>(&job.source);
    if (uri == nullptr) return Fail(ErrorKind::kInvalid, "the corpus names benchmarks by URI");
    LF_TRY_VOID(Compile(tools, job, by_benchmark[uri->text]));
  }
  for (const auto& [benchmark, timings] : by_benchmark) {
    const std::size_t trees = timings.total.size();
    Print({.bench = "codegen",
           .name = "tree to callable, median over walks of " + benchmark,
           .value = AtShare(timings.total, 0.5),
           .unit = "ms",
           .details = {{"p90", AtShare(timings.total, 0.9)},
                       {"max", AtShare(timings.total, 1)},
                       {"processor_time_median", AtShare(timings.total_cpu, 0.5)},
                       {"link_median", AtShare(timings.link, 0.5)},
                       {"trees", trees},
                       {"object_bytes_mean", timings.object_bytes / trees}}});
  }
  return {};
}

using Buffer = std::unique_ptr<float, decltype(&std::free)>;

// The best of many runs, in nanoseconds: the compiler's figure, not a measurement in the product's
// sense.
double BestRun(const worker::Kernel& kernel, worker::KernelFunction function) {
  std::vector<Buffer> buffers;
  std::vector<float*> pointers;
  for (const worker::BufferSpec& spec : kernel.buffers) {
    const std::size_t bytes = (spec.element_count * 4 + kAlignment - 1) / kAlignment * kAlignment;
    buffers.emplace_back(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)), &std::free);
    std::fill_n(buffers.back().get(), spec.element_count, 1.0F);
    pointers.push_back(buffers.back().get());
  }
  double best = std::numeric_limits<double>::infinity();
  const auto stop = Clock::now() + std::chrono::milliseconds(300);
  while (Clock::now() < stop) {
    constexpr int kRuns = 5;
    const auto start = Clock::now();
    for (int i = 0; i < kRuns; ++i) function(pointers.data());
    best = std::min(best, MillisecondsSince(start) * 1e6 / kRuns);
  }
  return best;
}

struct Named {
  std::string name;
  std::string actions;  // from the plain m, k, n
};

Result<void> RunNamed(Toolchain& tools, int size, const Named& schedule) {
  const auto actions = looptree::ParseActionList(schedule.actions);
  if (!actions) return Fail(ErrorKind::kInvalid, actions.error().message);
  const auto replayed = looptree::Replay(
      looptree::BenchmarkUri{fmt::format("benchmark://mm-v0/mm{0}_{0}_{0}", size)}, *actions);
  if (!replayed) return Fail(ErrorKind::kInvalid, replayed.error().message);
  const auto kernel = tools.compiler->Compile(replayed->tree);
  if (!kernel) return Fail(ErrorKind::kInvalid, kernel.error().message);
  LF_TRY(const auto linked, tools.linker->Link(kernel->object));
  const double flops = 2.0 * size * size * size;
  const double ours = flops / BestRun(*kernel, linked->function());
  LF_TRY(const auto scratch, client::ScratchDir::Create());
  LF_TRY(const double peer_ns, EvaluateInC(replayed->tree, scratch.path()));
  Print({.bench = "codegen",
         .name = fmt::format("matmul {}, {}", size, schedule.name),
         .value = ours,
         .unit = "GFLOP/s",
         .peer = "the same loops in C, cc -O3",
         .peer_value = flops / peer_ns,
         .details = {{"actions", schedule.actions}}});
  return {};
}

Result<void> Run() {
  LF_TRY(Toolchain tools, MakeToolchain());
  LF_TRY_VOID(CompileCorpus(tools));
  const Named schedules[] = {
      {"m k n", ""},
      {"m n k", "down,swap_down"},
      // m/4, n/32, k, then a tile of 4 by 32
      {"tiled 4 x 32", "split_4,down,swap_down,down,split_32,swap_up,swap_up"},
  };
  for (const int size : {64, 128, 256}) {
    for (const Named& schedule : schedules) LF_TRY_VOID(RunNamed(tools, size, schedule));
  }
  return {};
}

}  // namespace
}  // namespace loopfleet::bench

int main() {
  const auto done = loopfleet::bench::Run();
  if (!done) fmt::print(stderr, "codegen: {}\n", done.error().message);
  return done ? 0 : 1;
}
