#include "worker/timing/sampler.h"

#include <gtest/gtest.h>

#include <numeric>

namespace loopfleet::worker {
namespace {

// A clock that only moves when the kernel runs.
class FakeStopwatch final : public Stopwatch {
 public:
  std::uint64_t NowNs() const override { return now; }
  std::uint64_t now = 1'000'000;
};

class FakeKernel final : public IterationRunner {
 public:
  FakeKernel(FakeStopwatch& clock, std::uint64_t run_ns) : clock_(clock), run_ns_(run_ns) {}
  void Run(std::uint64_t iterations) override {
    repetitions.push_back(iterations);
    clock_.now += run_ns_ * iterations;
  }
  std::uint64_t runs() const {
    return std::accumulate(repetitions.begin(), repetitions.end(), 0UL);
  }
  std::vector<std::uint64_t> repetitions;

 private:
  FakeStopwatch& clock_;
  std::uint64_t run_ns_;
};

TEST(SamplerTest, FastKernelsFillTheRepetition) {
  for (const std::uint64_t run_ns : {1U, 7U, 100U, 999U, 5'210U, 59'999U}) {
    FakeStopwatch clock;
    FakeKernel kernel(clock, run_ns);
    const Samples samples = TakeSamples({}, clock, kernel);
    ASSERT_EQ(samples.ns.size(), 15U) << run_ns;
    EXPECT_GE(samples.iterations * run_ns, 60'000U) << run_ns;
    EXPECT_LE(samples.iterations * run_ns, 60'000U * 12 / 10 + run_ns) << run_ns;
    for (const double ns : samples.ns) EXPECT_DOUBLE_EQ(ns, static_cast<double>(run_ns));
  }
}

TEST(SamplerTest, WarmUpIsAtLeastOneFullRepetition) {
  FakeStopwatch clock;
  FakeKernel kernel(clock, 1'000);
  const Samples samples = TakeSamples({}, clock, kernel);
  const std::uint64_t timed = samples.iterations * samples.ns.size();
  EXPECT_GE((kernel.runs() - timed) * 1'000, 60'000U);
}

TEST(SamplerTest, KernelsSlowerThanARepetitionRunOnceEach) {
  FakeStopwatch clock;
  FakeKernel kernel(clock, 1'000'000);
  const Samples samples = TakeSamples({}, clock, kernel);
  EXPECT_EQ(samples.iterations, 1U);
  EXPECT_EQ(samples.ns.size(), 15U);
  EXPECT_EQ(kernel.runs(), 16U);  // one to find out
}

TEST(SamplerTest, TheBudgetCutsTheNumberOfRepetitions) {
  FakeStopwatch clock;
  FakeKernel kernel(clock, 130'000'000);
  EXPECT_EQ(TakeSamples({}, clock, kernel).ns.size(), 8U);  // the first that is past 1 s
}

TEST(SamplerTest, ButNeverBelowTheLeastNumber) {
  FakeStopwatch clock;
  FakeKernel kernel(clock, 3'000'000'000);
  EXPECT_EQ(TakeSamples({}, clock, kernel).ns.size(), 5U);
}

TEST(SamplerTest, AClockThatStandsStillEndsWithPositiveSamples) {
  FakeStopwatch clock;
  FakeKernel kernel(clock, 0);
  const SamplingPolicy policy{.max_iterations = 1'000};
  const Samples samples = TakeSamples(policy, clock, kernel);
  EXPECT_EQ(samples.iterations, 1'000U);
  for (const double ns : samples.ns) EXPECT_GT(ns, 0);
}

}  // namespace
}  // namespace loopfleet::worker
