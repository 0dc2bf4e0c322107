// The sampler on functions of this program: what it sees, not how long anything takes.

#include "worker/timing/code_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {
namespace {

volatile std::uint64_t sink = 0;

// Each lies alone in 4 KiB.
constexpr std::uint64_t kCodeBytes = 4096;
[[gnu::noinline, gnu::aligned(kCodeBytes), gnu::section(".text.lf_a")]] void Spin() {
  for (int i = 0; i < 20'000; ++i) sink = sink + 1;
}
[[gnu::noinline, gnu::aligned(kCodeBytes), gnu::section(".text.lf_b")]] void CallSpin() {
  Spin();
  sink = sink + 1;  // no tail call
}
[[gnu::noinline, gnu::aligned(kCodeBytes), gnu::section(".text.lf_c")]] void Elsewhere() {
  for (int i = 0; i < 20'000; ++i) sink = sink + 2;
}

constexpr std::uint64_t kDurationNs = 300'000'000;
CodeSampler::Plan PlanFor(void (*code)()) {
  return {.code_address = reinterpret_cast<std::uint64_t>(code),
          .code_bytes = 256,
          .duration_ns = kDurationNs,
          .interval_ns = 1'000'000,
          .runs_between_looks = 3};
}

class CodeSamplerTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kEnough = 20;

  void SetUp() override { ASSERT_TRUE(CodeSampler::Install()); }
  // Repeats a plan while others leave it too little of the core for enough samples.
  static CodeSamples Take(const CodeSampler::Plan& plan, void (*run)()) {
    constexpr int kMostTries = 20;
    CodeSamples samples;
    for (int i = 0; i < kMostTries; ++i) {
      samples = CodeSampler::Take(plan, run);
      if (samples.offsets.size() > kEnough || samples.processor_ns >= plan.duration_ns) break;
    }
    return samples;
  }
  static double ShareInCode(const CodeSamples& samples) {
    const auto inside = std::ranges::count_if(
        samples.offsets, [](std::uint32_t offset) { return offset != CodeSamples::kElsewhere; });
    return static_cast<double>(inside) / static_cast<double>(samples.offsets.size());
  }
};

TEST_F(CodeSamplerTest, SeesTheCodeThatRuns) {
  const CodeSamples samples = Take(PlanFor(Spin), Spin);
  EXPECT_EQ(samples.runs % 3, 0U);
  ASSERT_GT(samples.offsets.size(), kEnough);
  EXPECT_GT(ShareInCode(samples), 0.9);
  for (const std::uint32_t offset : samples.offsets) {
    EXPECT_TRUE(offset < 256 || offset == CodeSamples::kElsewhere);
  }
}

TEST_F(CodeSamplerTest, RunsForTheProcessorTimeOrTenTimesThatOnTheWall) {
  const SystemStopwatch stopwatch;
  const std::uint64_t start = stopwatch.NowNs();
  const CodeSamples samples = CodeSampler::Take(PlanFor(Spin), Spin);
  const std::uint64_t waited = stopwatch.NowNs() - start;
  EXPECT_TRUE(samples.processor_ns >= kDurationNs || waited >= 10 * kDurationNs)
      << samples.processor_ns << " ns of the processor, " << waited << " ns";
}

TEST_F(CodeSamplerTest, AFunctionThatTheCodeCallsCountsForTheCall) {
  const CodeSamples samples = Take(PlanFor(CallSpin), CallSpin);
  ASSERT_GT(samples.offsets.size(), kEnough);
  EXPECT_GT(ShareInCode(samples), 0.9);
}

TEST_F(CodeSamplerTest, OtherCodeIsElsewhere) {
  const CodeSamples samples = Take(PlanFor(Spin), Elsewhere);
  ASSERT_GT(samples.offsets.size(), kEnough);
  EXPECT_LT(ShareInCode(samples), 0.1);
}

TEST_F(CodeSamplerTest, AShortPlanIsOneRoundOfRuns) {
  CodeSampler::Plan plan = PlanFor(Spin);
  plan.duration_ns = 0;
  EXPECT_EQ(CodeSampler::Take(plan, Spin).runs, 3U);
}

}  // namespace
}  // namespace loopfleet::worker
