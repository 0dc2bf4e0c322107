#include "worker/timing/canary.h"

#include <gtest/gtest.h>

#include "worker/timing/host_core_probe.h"

namespace loopfleet::worker {
namespace {

using std::chrono::seconds;

struct Watched {
  CanaryDriftDetector watch;
  Instant now{seconds(1'000)};
  void Observe(double arithmetic, double cache = 200, double memory = 3'000'000, int times = 1) {
    for (int i = 0; i < times; ++i) {
      watch.Observe({.took = {arithmetic, cache, memory}}, now);
      now += seconds(2);
    }
  }
};

TEST(CanaryWatchTest, SaysNothingBeforeTheFirstWindow) {
  Watched canaries;
  canaries.Observe(100, 200, 3e6, 8);
  EXPECT_EQ(canaries.watch.ratio(), 0);
  EXPECT_FALSE(canaries.watch.steady_until());
  canaries.Observe(100);
  EXPECT_DOUBLE_EQ(canaries.watch.ratio(), 1);
  EXPECT_FALSE(canaries.watch.drifting());
}

TEST(CanaryWatchTest, AShortDisturbanceIsNoDrift) {
  Watched canaries;
  canaries.Observe(100, 200, 3e6, 20);
  canaries.Observe(150, 300, 9e6, 4);  // of the 9 in the window
  EXPECT_FALSE(canaries.watch.drifting());
}

TEST(CanaryWatchTest, ALastingChangeIs) {
  Watched canaries;
  canaries.Observe(100, 200, 3e6, 20);
  const auto steady_until = canaries.watch.steady_until();
  canaries.Observe(114, 200, 3e6, 9);
  ASSERT_TRUE(canaries.watch.drifting());
  EXPECT_EQ(canaries.watch.drifting(), Canary::kArithmetic);
  EXPECT_NEAR(canaries.watch.ratio(), 1.14, 1e-9);
  // From the last steady window: everything measured since is in doubt.
  EXPECT_GE(*canaries.watch.steady_until(), *steady_until);
  EXPECT_LT(*canaries.watch.steady_until(), canaries.now - seconds(2 * 9));
}

TEST(CanaryWatchTest, QuickerIsDriftToo) {
  Watched canaries;
  canaries.Observe(100, 200, 3e6, 9);
  canaries.Observe(100, 120, 3e6, 9);
  EXPECT_EQ(canaries.watch.drifting(), Canary::kSecondCache);
}

TEST(CanaryWatchTest, MemoryOfAVirtualMachineMayVary) {
  Watched canaries;
  canaries.Observe(100, 200, 3e6, 9);
  canaries.Observe(100, 200, 5e6, 9);
  EXPECT_FALSE(canaries.watch.drifting());
  canaries.Observe(100, 200, 7e6, 9);
  EXPECT_EQ(canaries.watch.drifting(), Canary::kMemory);
}

TEST(CanaryWatchTest, IsOverWhenTheyAreAsTheyWere) {
  Watched canaries;
  canaries.Observe(100, 200, 3e6, 9);
  canaries.Observe(120, 200, 3e6, 9);
  ASSERT_TRUE(canaries.watch.drifting());
  canaries.Observe(100, 200, 3e6, 9);
  EXPECT_FALSE(canaries.watch.drifting());
}

TEST(CanaryWatchTest, SenselessReadingsAreLeftOut) {
  Watched canaries;
  canaries.Observe(100, 200, 3e6, 9);
  canaries.Observe(0, 200, 3e6, 9);
  EXPECT_FALSE(canaries.watch.drifting());
}

TEST(CanarySuiteTest, EachTakesSomeTime) {
  const SystemStopwatch stopwatch;
  const CoreKernels& kernels = core_kernels::kPortable;
  HostCoreProbe probe(kernels, stopwatch, 500);
  CanarySuite suite(kernels, 1 << 20);
  const auto reading = suite.Run(stopwatch, probe);
  ASSERT_TRUE(reading);
  for (const double took : reading->took) EXPECT_GT(took, 0);
}

}  // namespace
}  // namespace loopfleet::worker
