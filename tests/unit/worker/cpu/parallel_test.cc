// Compares parallel loops on real threads with the interpreter: random trees with many loops
// annotated `thread`, each run several times, because races do not show in every run.

#include <gtest/gtest.h>

#include "common/job/loop_schedule.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/transform.h"
#include "tests/unit/worker/cpu/fuzz_check.h"
#include "tests/unit/worker/lowering/guarded_run.h"

namespace loopfleet::worker {
namespace {

using looptree::LoopTree;

constexpr int kShards = 2;
constexpr int kTrees = 350;  // per shard
constexpr int kRuns = 4;     // per kernel

// Replaces the annotations of about half of the loops with `thread`.
LoopTree WithThreads(const LoopTree& tree, SplitMix64& random) {
  std::vector<looptree::LoopAnnotation> annotations;
  for (looptree::TreeRef ref = 0; ref < tree.nodes().size(); ++ref) {
    if (tree.nodes()[ref].kind != looptree::TreeNode::Kind::kLoop || random.Below(2) == 0) continue;
    annotations.push_back({ref, looptree::Annotation::kThread});
  }
  return looptree::Annotate(tree, annotations).value();
}

class Parallel : public ::testing::TestWithParam<int> {};

TEST_P(Parallel, EqualsTheInterpreter) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  FuzzCases cases(0x7e4d + seed);
  SplitMix64 random(seed);
  KernelRunner runner(CpuIsa::kHost);
  CachedReference references;
  int split = 0;
  for (int i = 0; i < kTrees; ++i) {
    FuzzCase fuzz = cases.Next();
    const auto replayed = ReplayJob(fuzz.job);
    ASSERT_TRUE(replayed.has_value()) << replayed.error().message;
    const LoopTree tree = WithThreads(replayed->tree, random);
    fuzz.job.source = looptree::IrText{looptree::IrTextOf(tree)};
    fuzz.job.actions.clear();
    fuzz.threads = 2 + static_cast<std::uint32_t>(random.Below(KernelRunner::kThreads - 1));
    const auto kernel = runner.TryCompile(tree, {.threads = fuzz.threads});
    ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
    if (kernel->threads == 1) continue;
    ++split;
    const auto& [inputs, reference] = references.Of(tree.program(), fuzz.input_seed);
    const auto interpreted = looptree::Interpret(tree, inputs);
    std::string problems;
    for (int run = 0; run < kRuns; ++run) {
      const auto outputs = runner.Run(*kernel, inputs, problems);
      problems += Difference(outputs, reference) + Difference(outputs, interpreted, reference);
    }
    ASSERT_EQ(problems, "") << "reproduce with: echo '" << ToLine(fuzz) << "' | fuzz_case\n"
                            << looptree::TreeText(tree, {});
  }
  EXPECT_GT(split, kTrees / 2);
}
INSTANTIATE_TEST_SUITE_P(Shard, Parallel, ::testing::Range(0, kShards));

LoopTree Annotated(const std::string& uri, const std::vector<looptree::TreeRef>& loops) {
  const LoopTree plain = looptree::OpenBenchmark(looptree::BenchmarkUri{uri})->start;
  std::vector<looptree::LoopAnnotation> annotations;
  for (looptree::TreeRef loop : loops) {
    annotations.push_back({loop, looptree::Annotation::kThread});
  }
  return looptree::Annotate(plain, annotations).value();
}

TEST(ParallelKernel, OneThreadIsTheKernelWithoutThem) {
  const LoopTree tree = Annotated("benchmark://mm-v0/mm32_16_16", {0});
  const auto compiler = CpuCompiler::Create().value();
  const auto one = compiler->Compile(tree, {.threads = 1});
  EXPECT_EQ(one->threads, 1U);
  EXPECT_EQ(one->notes, std::vector<std::string>{"L0 thread"});
  EXPECT_TRUE(one->object ==
              compiler->Compile(Annotated("benchmark://mm-v0/mm32_16_16", {}))->object);
  const auto two = compiler->Compile(tree, {.threads = 2});
  EXPECT_EQ(two->threads, 2U);
  EXPECT_EQ(two->notes, std::vector<std::string>{});
  // Each thread has its own row of sums.
  EXPECT_EQ(two->scratch_bytes, 2 * one->scratch_bytes);
}

TEST(ParallelKernel, SaysWhyALoopIsNotSplit) {
  // Loops m, k, n, and m, n for the write: k is reduced, and n is inside m, which is split already.
  const LoopTree tree = Annotated("benchmark://mm-v0/mm32_16_16", {0, 1, 2});
  const auto kernel = CpuCompiler::Create().value()->Compile(tree, {.threads = 2});
  EXPECT_EQ(kernel->notes,
            (std::vector<std::string>{"L1 thread: %3 reduces over it",
                                      "L2 thread: inside L0, which is split already"}));
  const auto reduced = CpuCompiler::Create().value()->Compile(
      Annotated("benchmark://mm-v0/mm32_16_16", {1}), {.threads = 2});
  EXPECT_EQ(reduced->threads, 1U);
  EXPECT_EQ(reduced->notes, std::vector<std::string>{"L1 thread: %3 reduces over it"});
}

// Each thread has its own row of sums: 64 of them do not fit beside the tensors, one does.
TEST(ParallelKernel, RunsOnOneThreadWhereAllNeedTooMuchMemory) {
  const LoopTree tree = Annotated("benchmark://mm-v0/mm32_16_16", {0});
  const auto compiler = CpuCompiler::Create({.limits = {.footprint_bytes = 6000}}).value();
  const auto kernel = compiler->Compile(tree, {.threads = 64});
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  EXPECT_EQ(kernel->threads, 1U);
  EXPECT_EQ(kernel->notes, std::vector<std::string>{
                               "L0 thread: the intermediates of all threads need too much memory"});
}

}  // namespace
}  // namespace loopfleet::worker
