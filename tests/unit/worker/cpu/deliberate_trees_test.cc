// Trees that other implementations got wrong, or that are easy to get wrong.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "common/looptree/actions/walk.h"
#include "tests/unit/worker/cpu/kernel_runner.h"
#include "tests/unit/worker/lowering/program_zoo.h"
#include "worker/lowering/kernel_plan.h"

namespace loopfleet::worker {
namespace {

using looptree::Annotation;
using looptree::DimId;
using looptree::LoopSpec;
using looptree::LoopTree;
using looptree::Op;
using looptree::Program;
using looptree::Schedule;

constexpr CpuIsa kIsas[] = {CpuIsa::kHost, CpuIsa::kAvx512, CpuIsa::kAvx2, CpuIsa::kBaseline};

void ExpectRight(const LoopTree& tree) {
  for (CpuIsa isa : kIsas) {
    if (!HostRuns(isa)) continue;
    KernelRunner runner(isa);
    EXPECT_EQ(runner.Check(tree), "") << "isa " << static_cast<int>(isa);
    EXPECT_EQ(runner.checked(), 1);
  }
}

// m is dim 0, k dim 1, n dim 2.
Program MatrixProduct(std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto benchmark = looptree::OpenBenchmark(
      looptree::BenchmarkUri{fmt::format("benchmark://mm-v0/mm{}_{}_{}", m, n, k)});
  return benchmark.value().start.program();
}

DimId DimNamed(const Program& program, const std::string& name) {
  for (DimId dim = 0; dim < program.dims.size(); ++dim) {
    if (program.dims[dim].name == name) return dim;
  }
  ADD_FAILURE() << "no dim " << name;
  return 0;
}

// Parses "m/8 k n m": each item is a dim and the elements that one iteration covers (default 1).
// Sizes and tails follow from these.
std::vector<LoopSpec> Loops(const Program& program, const std::string& text) {
  std::vector<LoopSpec> loops;
  std::vector<std::int64_t> left;
  for (const looptree::Dim& dim : program.dims) left.push_back(dim.size);
  std::istringstream items(text);
  std::string item;
  while (items >> item) {
    const std::size_t slash = item.find('/');
    const std::int64_t inner = slash == std::string::npos ? 1 : std::stoll(item.substr(slash + 1));
    const DimId dim = DimNamed(program, item.substr(0, slash));
    loops.push_back({.dim = dim, .size = left[dim] / inner, .tail = left[dim] % inner});
    left[dim] = inner;
  }
  return loops;
}

LoopTree Scheduled(const Program& program, const std::string& compute, const std::string& write) {
  Schedule schedule(program.nodes.size());
  for (looptree::NodeId node = 0; node < program.nodes.size(); ++node) {
    const Op op = program.nodes[node].op;
    if (op == Op::kMultiply || op == Op::kAdd) schedule[node].loops = Loops(program, compute);
    if (op == Op::kWrite) schedule[node].loops = Loops(program, write);
  }
  auto tree = LoopTree::Build(std::make_shared<Program>(program), std::move(schedule));
  EXPECT_TRUE(tree.has_value()) << tree.error().message;
  return *std::move(tree);
}

TEST(DeliberateTrees, TailOfATail) {
  const Program program = MatrixProduct(33, 20, 19);
  ExpectRight(Scheduled(program, "m/8 m/4 k n m", "m n"));       // 4 r 1 / 2 / 4
  ExpectRight(Scheduled(program, "m/20 m/8 m/3 k n m", "m n"));  // 1 r 13 / 2 r 4 / 2 r 2 / 3
  ExpectRight(Scheduled(program, "k/7 m/8 k/3 n/6 m/3 n/4 m k n", "n m"));
  ExpectRight(Scheduled(program, "n/8 m/5 k n m", "n/8 m/5 m n"));  // shared tails
}

TEST(DeliberateTrees, PackedPanels) {
  // Rows of 2 to 8 KiB; panels with and without a remainder; all of k or a part at a time; rows of
  // the tile with a tail; panels cut by a loop in the middle of a dim's loops.
  for (const std::int64_t n : {519, 600, 1024, 2048}) {
    const Program program = MatrixProduct(41, n, 19);
    for (const char* compute :
         {"m/4 n/32 k m n", "m/4 n/48 k m n", "n/32 m/4 k m n", "k/8 m/4 n/32 k m n",
          "m/4 k/8 n/32 k m n", "n/192 m/4 n/48 k/5 k m n", "m/16 n/512 m/4 n/64 k m n",
          "n/64 m k n", "n/80 k/7 m k n"}) {
      const LoopTree tree = Scheduled(program, compute, "m n");
      ExpectRight(tree);
      // For the other sizes, not every schedule cuts panels evenly, so not all are packed.
      if (n < 1024 || !HostRuns(CpuIsa::kAvx512)) continue;
      KernelRunner runner(CpuIsa::kAvx512);
      const auto kernel = runner.TryCompile(tree, {});
      ASSERT_TRUE(kernel.has_value()) << compute;
      const std::uint64_t unpacked = PlanKernel(tree).value().scratch_bytes;
      EXPECT_GE(kernel->scratch_bytes, unpacked + static_cast<std::uint64_t>(19 * n * 4))
          << compute;
    }
  }
}

TEST(DeliberateTrees, FactorsThatLeaveNothing) {
  const Program program = MatrixProduct(16, 32, 8);
  ExpectRight(Scheduled(program, "m/16 k/8 n/32 m k n", "m n"));  // outer loops of one iteration
  ExpectRight(Scheduled(program, "m/1 k/1 n/1 m k n", "m n"));    // inner loops of one iteration
  ExpectRight(Scheduled(program, "k m/16 n m", "m n"));
}

TEST(DeliberateTrees, EveryOrderOfThreeLoops) {
  const Program program = MatrixProduct(9, 35, 17);
  for (const char* order : {"m k n", "m n k", "k m n", "k n m", "n k m", "n m k"}) {
    for (const char* write : {"m n", "n m"}) ExpectRight(Scheduled(program, order, write));
  }
}

// Rows that do not fit the registers, and columns outside the reduced loop.
TEST(DeliberateTrees, EveryOrderOfLoopsCutIntoStrips) {
  for (const Program& program : {MatrixProduct(5, 601, 6), MatrixProduct(40, 130, 7)}) {
    for (const char* order : {"m k n", "m n k", "k m n", "k n m", "n k m", "n m k", "k/3 m k n",
                              "k/3 n m/4 k m", "m/3 n/50 k n m", "n/64 k m n/8 n"}) {
      for (const char* write : {"m n", "n m"}) ExpectRight(Scheduled(program, order, write));
    }
  }
}

TEST(DeliberateTrees, ReductionOutermostIsSeveralRoots) {
  const Program program = MatrixProduct(12, 18, 10);
  const LoopTree tree = Scheduled(program, "k m n", "m n");
  EXPECT_EQ(tree.Children(std::nullopt).size(), 2);
  ExpectRight(tree);
}

TEST(DeliberateTrees, ReductionSplitRoundParallelLoops) {
  const Program program = MatrixProduct(14, 33, 50);
  ExpectRight(Scheduled(program, "k/16 m/4 k/4 m n k", "m n"));
  ExpectRight(Scheduled(program, "m/6 k/16 n/16 m k n", "m/6 n m"));
  ExpectRight(Scheduled(program, "k/20 n/16 m k/3 n k", "n m"));
}

// Tiles at, just below and just above the register capacity, on every instruction set.
TEST(DeliberateTrees, TilesRoundTheRegisterBudget) {
  for (const std::int64_t columns : {4, 8, 16, 17, 48, 112, 120, 448, 480}) {
    const Program program = MatrixProduct(13, columns, 6);
    for (const int rows : {1, 4, 6}) {
      const std::string tile = fmt::format("m/{} k n m", rows);
      ExpectRight(Scheduled(program, tile, "m n"));
    }
  }
}

TEST(DeliberateTrees, OneElement) { ExpectRight(PlainTree(MatrixProduct(1, 1, 1))); }

// No loop is shared: every value passes through memory.
TEST(DeliberateTrees, NothingReusable) {
  const Program program = MatrixProduct(10, 21, 12);
  Schedule schedule = Scheduled(program, "m k n", "m n").schedule();
  for (auto& node : schedule) {
    for (LoopSpec& loop : node.loops) loop.reusable = false;
  }
  auto tree = LoopTree::Build(std::make_shared<Program>(program), schedule);
  ASSERT_TRUE(tree.has_value());
  ExpectRight(*tree);
}

// Trees of the simple dialect for some sizes: the middle loop at every size, the inner loop at the
// first six.
TEST(DeliberateTrees, EverySimpleState) {
  KernelRunner runner(CpuIsa::kHost);
  int trees = 0;
  for (const int size : {1, 2, 5, 17, 40}) {
    const auto benchmark = looptree::OpenBenchmark(
        looptree::BenchmarkUri{fmt::format("benchmark://loop_tool-cpu-v0/{}", size)});
    ASSERT_TRUE(benchmark.has_value());
    for (int middle = 0; middle < size; ++middle) {
      for (int inner = 0; inner < 6 && inner < size; ++inner) {
        looptree::SimpleWalk walk(*benchmark);
        const auto act = [&](looptree::Action action) {
          ASSERT_TRUE(walk.Apply(action).has_value());
        };
        const auto select_next = [&] {
          act(looptree::ToggleMode{});
          act(looptree::Up{});
          act(looptree::ToggleMode{});
        };
        select_next();
        for (int i = 0; i < middle; ++i) act(looptree::Up{});
        select_next();
        for (int i = 0; i < inner; ++i) act(looptree::Up{});
        act(looptree::ToggleThread{});
        const auto tree = walk.Tree();
        ASSERT_TRUE(tree.has_value());
        ASSERT_EQ(runner.Check(*tree), "");
        ++trees;
      }
    }
  }
  EXPECT_EQ(runner.checked(), trees);
  EXPECT_GT(trees, 300);
}

TEST(DeliberateTrees, OneSumForEveryRow) { ExpectRight(RepeatedSumTree()); }

// A leaf inside loops that are not its own. They must not repeat its reduction.
TEST(DeliberateTrees, LeafInForeignLoops) {
  ProgramBuilder b;
  const DimId k = b.Dim("k", 6);
  const DimId m = b.Dim("m", 5);
  const DimId n = b.Dim("n", 7);
  const auto cube = b.Read({k, m, n});
  const auto square = b.Read({k, n});
  b.Write(b.Apply(Op::kNegate, {cube}, {k, m, n}), {k, m, n});
  b.Write(b.Apply(Op::kAdd, {square}, {n}), {n});
  const Program& program = b.program();
  Schedule schedule(program.nodes.size());
  for (looptree::NodeId node = 0; node < program.nodes.size(); ++node) {
    const Op op = program.nodes[node].op;
    if (op == Op::kNegate) schedule[node].loops = Loops(program, "k m n");
    if (op == Op::kAdd) schedule[node].loops = Loops(program, "k n");
    if (op == Op::kWrite) {
      schedule[node].loops = Loops(program, program.nodes[node].dims.size() == 3 ? "k m n" : "n");
    }
  }
  auto tree = LoopTree::Build(std::make_shared<Program>(program), schedule);
  ASSERT_TRUE(tree.has_value()) << tree.error().message;
  ExpectRight(*tree);
}

}  // namespace
}  // namespace loopfleet::worker
