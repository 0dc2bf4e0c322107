// Compares kernels with the reference, on every kind of program and every instruction set of the
// host: random schedules, random walks of the agent dialect, and random walks of the simple
// dialect.

#include <gtest/gtest.h>

#include <tuple>

#include "common/base/random.h"
#include "common/looptree/actions/walk.h"
#include "tests/unit/worker/cpu/kernel_runner.h"
#include "tests/unit/worker/lowering/fuzz_case.h"
#include "tests/unit/worker/lowering/program_zoo.h"

namespace loopfleet::worker {
namespace {

using looptree::AgentWalk;
using looptree::SimpleWalk;

constexpr int kRandomTrees = 12;      // per program and instruction set
constexpr int kInterpretedTrees = 4;  // of these, how many are compared with the interpreter too
constexpr int kRandomWalks = 8;
constexpr int kSimpleWalks = 40;

const char* NameOf(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx512: return "Avx512";
    case CpuIsa::kAvx2: return "Avx2";
    case CpuIsa::kBaseline: return "Baseline";
    case CpuIsa::kAArch64: return "AArch64";
    case CpuIsa::kWasm32: return "Wasm32";
    case CpuIsa::kHost: break;
  }
  return "Host";
}

KernelRunner& RunnerFor(CpuIsa isa) {
  static KernelRunners runners;
  return runners.For(isa);
}

class Differential : public ::testing::TestWithParam<std::tuple<CpuIsa, std::size_t>> {
 protected:
  void SetUp() override {
    if (!HostRuns(isa())) GTEST_SKIP() << "this host cannot run " << NameOf(isa()) << " code";
  }
  CpuIsa isa() const { return std::get<0>(GetParam()); }
  std::size_t index() const { return std::get<1>(GetParam()); }
  ZooProgram program() const { return ProgramZoo()[index()]; }
  KernelRunner& runner() { return RunnerFor(isa()); }
  SplitMix64 Seeded(std::uint64_t salt) const { return SplitMix64(1000 * index() + salt); }
};

TEST_P(Differential, RandomSchedules) {
  EXPECT_EQ(runner().Check(PlainTree(program().program)), "");
  SplitMix64 random = Seeded(1);
  for (int i = 0; i < kRandomTrees; ++i) {
    const looptree::LoopTree tree = RandomTree(program().program, random);
    const auto oracles =
        i < kInterpretedTrees ? KernelRunner::Oracles::kBoth : KernelRunner::Oracles::kProgram;
    ASSERT_EQ(runner().Check(tree, random.Next(), oracles), "") << "random tree " << i;
  }
}

TEST_P(Differential, RandomWalks) {
  SplitMix64 random = Seeded(2);
  const looptree::Benchmark start{.start = PlainTree(program().program)};
  for (int i = 0; i < kRandomWalks; ++i) {
    AgentWalk walk(start, looptree::RuleSet::kStructural);
    for (std::uint64_t left = 2 + random.Below(24); left > 0; --left) {
      (void)walk.Apply(RandomAgentAction(random));  // an illegal one changes nothing
    }
    ASSERT_EQ(runner().Check(walk.tree(), random.Next()), "") << "random walk " << i;
  }
}

std::string ParamName(const ::testing::TestParamInfo<Differential::ParamType>& info) {
  return ProgramZoo()[std::get<1>(info.param)].name + NameOf(std::get<0>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Zoo, Differential,
                         ::testing::Combine(::testing::Values(CpuIsa::kHost, CpuIsa::kAvx512,
                                                              CpuIsa::kAvx2, CpuIsa::kBaseline),
                                            ::testing::Range<std::size_t>(0, ProgramZoo().size())),
                         ParamName);

TEST(DifferentialSimple, RandomWalks) {
  SplitMix64 random(7);
  for (int i = 0; i < kSimpleWalks; ++i) {
    const std::uint64_t size = 1 + random.Below(400);
    const auto benchmark = looptree::OpenBenchmark(
        looptree::BenchmarkUri{"benchmark://loop_tool-cpu-v0/" + std::to_string(size)});
    ASSERT_TRUE(benchmark.has_value());
    SimpleWalk walk(*benchmark);
    for (std::uint64_t left = random.Below(40); left > 0; --left) {
      ASSERT_TRUE(walk.Apply(RandomSimpleAction(random)).has_value());
    }
    const auto tree = walk.Tree();
    ASSERT_TRUE(tree.has_value());
    ASSERT_EQ(RunnerFor(CpuIsa::kHost).Check(*tree, random.Next()), "") << "walk " << i;
  }
}

}  // namespace
}  // namespace loopfleet::worker
