#include "worker/timing/host_slowdown.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

TEST(HostSlowdown, IsThatOfASharedCoreUntilItHasSeenEnough) {
  HostSlowdown slowdown;
  EXPECT_EQ(slowdown.factor(), 2);
  for (int i = 0; i < 19; ++i) slowdown.Observe(1.2);
  EXPECT_EQ(slowdown.factor(), 2);
  slowdown.Observe(1.2);
  EXPECT_EQ(slowdown.factor(), 1.2);
}

TEST(HostSlowdown, IsWhatNearlyAllStayBelowAndNoInterruption) {
  HostSlowdown slowdown;
  for (int i = 1; i <= 100; ++i) slowdown.Observe(1 + 0.005 * i);
  EXPECT_NEAR(slowdown.factor(), 1.475, 0.006);
  for (int i = 0; i < 128; ++i) slowdown.Observe(7);
  EXPECT_EQ(slowdown.factor(), 2);
  for (int i = 0; i < 128; ++i) slowdown.Observe(1.1);
  EXPECT_EQ(slowdown.factor(), 1.1) << "the neighbour has gone";
}

}  // namespace
}  // namespace loopfleet::worker
