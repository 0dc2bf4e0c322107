// Measures the compiler: the time from tree to callable, and the speed of its code beside the
// peers'. One process without a sandbox, so only the compiler is measured.
//
//   bench_codegen [--only latency,orders,threads,strides,best,article,add] [--seconds 60]

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bench/corpus/corpus.h"
#include "bench/corpus/programs.h"
#include "bench/peers/c_peer.h"
#include "bench/peers/gemm_peers.h"
#include "bench/peers/llvm_o3.h"
#include "bench/peers/numpy_peer.h"
#include "bench/rigs/compiled_tree.h"
#include "bench/rigs/contest.h"
#include "bench/rigs/result_line.h"
#include "bench/rigs/schedule_search.h"
#include "bench/rigs/stopwatch.h"
#include "client/scratch_dir.h"
#include "common/base/quantile.h"
#include "common/job/loop_schedule.h"
#include "common/looptree/actions/action.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/transform.h"
#include "kernel/thread_pool.h"
#include "worker/cpu/cpu_compiler.h"
#include "worker/isa/isa_support.h"

namespace loopfleet::bench {
namespace {

using Clock = std::chrono::steady_clock;
using looptree::BenchmarkUri;

struct Options {
  std::string only;  // section names, separated by commas; empty: all
  std::int64_t seconds = 60;

  bool Has(std::string_view section) const {
    return only.empty() || only.find(section) != std::string::npos;
  }
};

// Adds the lowering revision and the ISA, which a figure is valid for.
void PrintFigure(ResultLine line) {
  line.details["lowering"] = worker::kLoweringRevision;
  line.details["isa"] = worker::HostIsa().name;
  Print(line);
}

// Processor time of this thread: unlike wall time, it excludes the work of other threads.
double ThreadMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

Result<looptree::Replayed> TreeOf(const looptree::Source& source, const std::string& actions) {
  const auto parsed = looptree::ParseActionList(actions);
  if (!parsed) return Fail(ErrorKind::kInvalid, parsed.error().message);
  auto replayed = looptree::Replay(source, *parsed);
  if (!replayed) return Fail(ErrorKind::kInvalid, replayed.error().message);
  return *std::move(replayed);
}

// ---------------------------------------------------------------- latency: from tree to callable

struct Timings {
  std::vector<double> total;
  std::vector<double> total_cpu;
  std::vector<double> link;
  std::vector<double> o3;  // for every kO3Share-th tree
  std::size_t object_bytes = 0;
};

constexpr std::size_t kO3Share = 8;  // LLVM's own pipeline is slow, so only every eighth tree

Result<void> Compile(Toolchain& tools, LlvmO3& o3, const looptree::LoopTree& tree,
                     Timings& timings) {
  const double cpu_start = ThreadMilliseconds();
  const auto start = Clock::now();
  const auto kernel = tools.compiler->Compile(tree);
  if (!kernel) return Fail(ErrorKind::kInvalid, kernel.error().message);
  const auto compiled = Clock::now();
  LF_TRY(const auto linked, tools.linker->Link(kernel->object));
  timings.total.push_back(Since<std::milli>(start));
  timings.total_cpu.push_back(ThreadMilliseconds() - cpu_start);
  timings.link.push_back(Since<std::milli>(compiled));
  timings.object_bytes += kernel->object.size();
  if (timings.total.size() % kO3Share != 1) return {};
  const auto ir = tools.compiler->CompileToIr(tree);
  if (!ir) return Fail(ErrorKind::kInvalid, ir.error().message);
  LF_TRY(const double milliseconds, o3.Compile(*ir));
  timings.o3.push_back(milliseconds + timings.link.back());
  return {};
}

Result<void> RunLatency(Toolchain& tools) {
  LF_TRY(LlvmO3 o3, LlvmO3::Create());
  for (const char* corpus : {"matmul_walks", "kinds_walks"}) {
    LF_TRY(const std::vector<JobSpec> jobs,
           ReadCorpus(fmt::format("{}/bench/corpus/{}.jsonl", LOOPFLEET_SOURCE_DIR, corpus)));
    std::map<std::string, Timings> by_benchmark;
    for (const JobSpec& job : jobs) {
      const auto replayed = ReplayJob(job);
      if (!replayed) return Fail(ErrorKind::kInvalid, replayed.error().message);
      const auto* uri = std::get_if<BenchmarkUri>(&job.source);
      LF_TRY_VOID(
          Compile(tools, o3, replayed->tree, by_benchmark[uri == nullptr ? job.tag : uri->text]));
    }
    Timings all;
    for (const auto& [benchmark, timings] : by_benchmark) {
      const std::size_t trees = timings.total.size();
      all.total.insert(all.total.end(), timings.total.begin(), timings.total.end());
      PrintFigure({.bench = "codegen",
                   .name = "tree to callable, median over walks of " + benchmark,
                   .value = Quantile(timings.total, 0.5),
                   .unit = "ms",
                   .peer = "the same IR through LLVM's O3 pipeline and code generator, and linked",
                   .peer_value = Quantile(timings.o3, 0.5),
                   .details = {{"p90", Quantile(timings.total, 0.9)},
                               {"max", Quantile(timings.total, 1)},
                               {"processor_time_median", Quantile(timings.total_cpu, 0.5)},
                               {"link_median", Quantile(timings.link, 0.5)},
                               {"trees", trees},
                               {"object_bytes_mean", timings.object_bytes / trees}}});
    }
    PrintFigure({.bench = "codegen",
                 .name = fmt::format("tree to callable, median over all of {}", corpus),
                 .value = Quantile(all.total, 0.5),
                 .unit = "ms",
                 .details = {{"p90", Quantile(all.total, 0.9)},
                             {"p99", Quantile(all.total, 0.99)},
                             {"max", Quantile(all.total, 1)},
                             {"trees", all.total.size()}}});
  }
  return {};
}

// -------------------------------------------------- orders: default loop orders, a tile, and cc

struct Named {
  std::string name;
  std::string actions;  // from the plain m, k, n
};

Result<void> RunOrder(Toolchain& tools, int size, const Named& schedule) {
  LF_TRY(
      const auto replayed,
      TreeOf(BenchmarkUri{fmt::format("benchmark://mm-v0/mm{0}_{0}_{0}", size)}, schedule.actions));
  LF_TRY(CompiledTree ours,
         CompiledTree::Make(tools, replayed.tree, Expected(replayed.tree.program())));
  LF_TRY(const auto scratch, client::ScratchDir::Create());
  LF_TRY(CKernel peer, CKernel::Make(replayed.tree, scratch.path()));
  const std::vector<Standing> standings =
      Compete({InProcess("ours", [&] { ours.Run(); }), InProcess("cc", [&] { peer.Run(); })},
              {.rounds = 15, .batch = std::chrono::milliseconds(1)});
  const double flops = 2.0 * size * size * size;
  PrintFigure({.bench = "codegen",
               .name = fmt::format("matmul {}, {}", size, schedule.name),
               .value = flops / standings[0].median_ns,
               .unit = "GFLOP/s",
               .peer = "the same loops in C, cc -O3 -march=native",
               .peer_value = flops / standings[1].median_ns,
               .details = {{"best", flops / standings[0].best_ns},
                           {"peer_best", flops / standings[1].best_ns},
                           {"actions", schedule.actions}}});
  return {};
}

Result<void> RunOrders(Toolchain& tools) {
  const Named schedules[] = {
      {"m k n", ""},
      {"m n k", "down,swap_down"},
      {"k m n", "swap_down"},
      {"k n m", "swap_down,swap_down"},
      {"n m k", "down,down,swap_up,swap_up"},
      {"n k m", "down,down,swap_up,swap_up,down,swap_down"},
      // m/4, n/32, k, then a tile of 4 by 32
      {"tiled 4 x 32", "split_4,down,swap_down,down,split_32,swap_up,swap_up"},
  };
  for (const int size : {64, 128, 256}) {
    for (const Named& schedule : schedules) LF_TRY_VOID(RunOrder(tools, size, schedule));
  }
  return {};
}

// ----------------------------------------------- threads: the same tree on one core and on two

Result<looptree::LoopTree> WithThreads(const looptree::Source& source, const std::string& actions) {
  LF_TRY(const auto replayed, TreeOf(source, actions));
  const looptree::LoopAnnotation outermost{0, looptree::Annotation::kThread};
  auto tree = looptree::Annotate(replayed.tree, {&outermost, 1});
  if (!tree) return Fail(ErrorKind::kInvalid, tree.error().message);
  return *std::move(tree);
}

Result<void> RunThreads(Toolchain& tools) {
  const ThreadPool pool({0, 1});
  const std::pair<std::string, std::string> cases[] = {
      {"benchmark://mm-v0/mm128_128_128", "split_4,down,swap_down,down,split_32,swap_up,swap_up"},
      {"benchmark://mm-v0/mm256_256_256", "split_4,down,swap_down,down,split_32,swap_up,swap_up"},
      {"benchmark://mm-v0/mm512_512_512", "split_4,down,swap_down,down,split_32,swap_up,swap_up"},
  };
  for (const auto& [uri, actions] : cases) {
    LF_TRY(const looptree::LoopTree tree, WithThreads(BenchmarkUri{uri}, actions));
    const Expected expected(tree.program());
    LF_TRY(CompiledTree one, CompiledTree::Make(tools, tree, expected));
    LF_TRY(CompiledTree two, CompiledTree::Make(tools, tree, expected, &pool));
    const std::vector<Standing> standings =
        Compete({InProcess("two", [&] { two.Run(); }), InProcess("one", [&] { one.Run(); })}, {});
    const auto flops = static_cast<double>(looptree::FlopCount(tree.program()));
    PrintFigure({.bench = "codegen",
                 .name = fmt::format("two threads, {}", uri),
                 .value = flops / standings[0].median_ns,
                 .unit = "GFLOP/s",
                 .peer = "the same tree on one thread",
                 .peer_value = flops / standings[1].median_ns,
                 .details = {{"best", flops / standings[0].best_ns},
                             {"peer_best", flops / standings[1].best_ns},
                             {"actions", actions + ", and thread on the outermost loop"}}});
  }
  return {};
}

// ---------------------------------- strides: row lengths at a power of two, and a little off it

// A column read over such rows falls into few cache sets. Copying into panels avoids that; the
// difference from the nearest sizes shows what is left to gain.
Result<void> RunStrides(Toolchain& tools, int size) {
  const std::pair<std::string, std::string> schedules[] = {
      {"tiles of 4 x 32", "split_4,down,swap_down,down,split_32,swap_up,swap_up"},
      {"the same in 64 steps of k at a time",
       "split_4,down,swap_down,down,split_32,swap_up,swap_up,down,split_64,swap_up,swap_up"},
  };
  constexpr int kOff = 32;
  for (const auto& [name, actions] : schedules) {
    std::vector<CompiledTree> kernels;
    std::vector<double> flops;
    for (const int rows : {size, size - kOff, size + kOff}) {
      const BenchmarkUri uri{fmt::format("benchmark://mm-v0/mm{0}_{0}_{0}", rows)};
      LF_TRY(const auto replayed, TreeOf(uri, actions));
      const Expected expected(replayed.tree.program());
      LF_TRY(CompiledTree kernel, CompiledTree::Make(tools, replayed.tree, expected));
      kernels.push_back(std::move(kernel));
      flops.push_back(static_cast<double>(looptree::FlopCount(replayed.tree.program())));
    }
    std::vector<Contestant> contestants;
    for (CompiledTree& kernel : kernels) {
      contestants.push_back(InProcess(name, [&kernel] { kernel.Run(); }));
    }
    const std::vector<Standing> standings = Compete(contestants, {.rounds = 15});
    const auto rate = [&](std::size_t i) { return flops[i] / standings[i].median_ns; };
    PrintFigure({.bench = "codegen",
                 .name = fmt::format("rows of {}, {}", size, name),
                 .value = rate(0),
                 .unit = "GFLOP/s",
                 .peer = fmt::format("the mean of {} and {}", size - kOff, size + kOff),
                 .peer_value = (rate(1) + rate(2)) / 2,
                 .details = {{"actions", actions}}});
  }
  return {};
}

// ------------------------------------------------------- best: a search against the libraries

Result<void> RunBest(Toolchain& tools, int size, std::int64_t seconds) {
  const BenchmarkUri uri{fmt::format("benchmark://mm-v0/mm{0}_{0}_{0}", size)};
  LF_TRY(const auto start, TreeOf(uri, ""));
  QuietCore core;
  LF_TRY(const Found found, SearchSchedule(tools, core, start.benchmark,
                                           {.budget = std::chrono::seconds(seconds),
                                            .seed = static_cast<std::uint64_t>(size)}));
  // Compiled again, with new buffers.
  const auto replayed = looptree::Replay(uri, found.actions);
  if (!replayed) return Fail(ErrorKind::kInvalid, replayed.error().message);
  const Expected expected(replayed->tree.program());
  LF_TRY(CompiledTree ours, CompiledTree::Make(tools, replayed->tree, expected));

  const auto elements = static_cast<std::uint64_t>(size) * static_cast<std::uint64_t>(size);
  const Buffer a = MakeBuffer(elements, 1);
  const Buffer b = MakeBuffer(elements, 1);
  const Buffer c = MakeBuffer(elements, 0);
  std::vector<Contestant> contestants = {InProcess("ours", [&] { ours.Run(); })};
  for (const GemmPeer& peer : GemmPeers(size)) {
    if (!peer.multiply) {
      fmt::print(stderr, "codegen: no {} to compare with: {}\n", peer.name, peer.missing);
      PrintFigure({.bench = "codegen",
                   .name = fmt::format("matmul {}, {}", size, peer.name),
                   .unit = "GFLOP/s",
                   .peer = peer.name});
      continue;
    }
    contestants.push_back(InProcess(
        peer.name, [&, multiply = peer.multiply] { multiply(a.get(), b.get(), c.get()); }));
  }
  const std::vector<Standing> standings = Compete(contestants, {.rounds = 41, .core = &core});
  const double flops = 2.0 * size * size * size;
  nlohmann::ordered_json all;
  std::size_t best = 0;
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    all[contestants[i].name] = {{"median", flops / standings[i].median_ns},
                                {"best", flops / standings[i].best_ns}};
    if (i > 0 && (best == 0 || standings[i].median_ns < standings[best].median_ns)) best = i;
  }
  const std::string actions =
      fmt::format("{}", fmt::join(looptree::ActionNames(found.actions), ","));
  ResultLine line{
      .bench = "codegen",
      .name = fmt::format("matmul {}, best of a {} s search", size, seconds),
      .value = flops / standings[0].median_ns,
      .unit = "GFLOP/s",
      .peer = best == 0 ? "" : "the best of the libraries: " + contestants[best].name,
      .peer_value = std::nullopt,
      .details = {
          {"gflop_per_second", all}, {"actions", actions}, {"schedules_tried", found.evaluated}}};
  if (best > 0) line.peer_value = flops / standings[best].median_ns;
  PrintFigure(line);
  return {};
}

// ------------------------------------------- article: a matrix product of positive products only

constexpr std::int64_t kArticleRows = 33;
constexpr std::int64_t kArticleColumns = 48;

Result<void> RunArticle(Toolchain& tools, NumpyPeer* numpy, std::int64_t depth) {
  const looptree::IrText ir{
      looptree::IrTextOf(SumOfPositiveProducts(kArticleRows, kArticleColumns, depth))};
  // m/5, k, then a tile of 5 rows by all 48 columns
  const std::string actions = "split_5,down,swap_down";
  LF_TRY(const auto replayed, TreeOf(ir, actions));
  // The one-element input must be 0.
  Expected expected(replayed.tree.program());
  expected.inputs.back().assign(1, 0);
  expected.reference = looptree::Evaluate(replayed.tree.program(), expected.inputs);
  LF_TRY(CompiledTree ours, CompiledTree::Make(tools, replayed.tree, expected));
  std::vector<Contestant> contestants = {InProcess("ours", [&] { ours.Run(); })};
  if (numpy != nullptr) {
    for (const char* name : {"broadcast_nk", "broadcast_k"}) {
      contestants.push_back(
          {.name = name, .time = [=](int runs) { return numpy->Time(name, depth, runs); }});
    }
  }
  const std::vector<Standing> standings = Compete(contestants, {.rounds = 15});
  ResultLine line{.bench = "codegen",
                  .name = fmt::format("sum of positive products, M={} N={} K={}: runs per second",
                                      kArticleRows, kArticleColumns, depth),
                  .value = 1e9 / standings[0].median_ns,
                  .unit = "1/s",
                  .peer = "numpy broadcasting, the faster of two ways",
                  .peer_value = std::nullopt,
                  .details = {{"us", standings[0].median_ns * 1e-3}, {"actions", actions}}};
  if (numpy != nullptr) {
    const double peer_ns = std::min(standings[1].median_ns, standings[2].median_ns);
    line.peer_value = 1e9 / peer_ns;
    line.details["numpy"] = numpy->version();
    line.details["numpy_k_in_the_middle_us"] = standings[1].median_ns * 1e-3;
    line.details["numpy_k_innermost_us"] = standings[2].median_ns * 1e-3;
  }
  PrintFigure(line);
  return {};
}

// ----------------------------------------------------- add: 8 M floats, beside numpy and stores

Result<void> RunAdd(Toolchain& tools, NumpyPeer* numpy) {
  constexpr std::int64_t kElements = 8388607;  // the largest size of the dataset
  LF_TRY(const auto replayed,
         TreeOf(looptree::IrText{looptree::IrTextOf(VectorSum(kElements))}, ""));
  LF_TRY(CompiledTree ours,
         CompiledTree::Make(tools, replayed.tree, Expected(replayed.tree.program())));
  std::vector<Contestant> contestants = {InProcess("ours", [&] { ours.Run(); })};
  if (numpy != nullptr) {
    contestants.push_back(
        {.name = "numpy", .time = [=](int runs) { return numpy->Time("add", kElements, runs); }});
  }
  const std::vector<Standing> standings = Compete(contestants, {.rounds = 31});
  constexpr double kBytes = 3.0 * 4 * kElements;
  ResultLine line{.bench = "codegen",
                  .name = "add of 8388607 floats",
                  .value = kBytes / standings[0].median_ns,
                  .unit = "GB/s",
                  .peer = "numpy, np.add(a, b, out=c)",
                  .peer_value = std::nullopt,
                  .details = {{"best", kBytes / standings[0].best_ns}}};
  if (numpy != nullptr) {
    line.peer_value = kBytes / standings[1].median_ns;
    line.details["peer_best"] = kBytes / standings[1].best_ns;
    line.details["numpy"] = numpy->version();
  }
  PrintFigure(line);
  return {};
}

Result<void> Run(const Options& options) {
  LF_TRY(Toolchain tools, MakeToolchain());
  if (options.Has("latency")) LF_TRY_VOID(RunLatency(tools));
  if (options.Has("orders")) LF_TRY_VOID(RunOrders(tools));
  if (options.Has("threads")) LF_TRY_VOID(RunThreads(tools));
  if (options.Has("strides")) {
    for (const int size : {512, 1024}) LF_TRY_VOID(RunStrides(tools, size));
  }
  if (options.Has("article") || options.Has("add")) {
    auto numpy = NumpyPeer::Start(LOOPFLEET_SOURCE_DIR "/bench/peers/numpy_peer.py");
    if (!numpy)
      fmt::print(stderr, "codegen: no numpy to compare with: {}\n", numpy.error().message);
    NumpyPeer* peer = numpy ? &*numpy : nullptr;
    if (options.Has("article")) {
      for (const std::int64_t depth : {16, 64, 128, 256, 1024}) {
        LF_TRY_VOID(RunArticle(tools, peer, depth));
      }
    }
    if (options.Has("add")) LF_TRY_VOID(RunAdd(tools, peer));
  }
  if (options.Has("best")) {
    for (const int size : {64, 128, 256, 512}) LF_TRY_VOID(RunBest(tools, size, options.seconds));
  }
  return {};
}

}  // namespace
}  // namespace loopfleet::bench

int main(int count, char** arguments) {
  loopfleet::bench::Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = arguments[i];
    if (name == "--only") options.only = arguments[i + 1];
    if (name == "--seconds") options.seconds = std::stoll(arguments[i + 1]);
  }
  const auto done = loopfleet::bench::Run(options);
  if (!done) fmt::print(stderr, "codegen: {}\n", done.error().message);
  return done ? 0 : 1;
}
