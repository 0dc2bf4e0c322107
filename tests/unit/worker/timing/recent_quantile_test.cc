#include "worker/timing/recent_quantile.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

TEST(RecentQuantile, IsCautiousUntilItHasSeenEnough) {
  RecentQuantile quantile(0.009);
  EXPECT_EQ(quantile.value(), 0.009);
  for (int i = 0; i < 19; ++i) quantile.Observe(0.001);
  EXPECT_EQ(quantile.value(), 0.009);
  quantile.Observe(0.001);
  EXPECT_EQ(quantile.value(), 0.001);
}

TEST(RecentQuantile, IsWhatNearlyAllValuesStayBelow) {
  RecentQuantile quantile(0);
  for (int i = 1; i <= 100; ++i) quantile.Observe(0.0001 * i);
  EXPECT_NEAR(quantile.value(), 0.0095, 0.0001);
}

TEST(RecentQuantile, ForgetsAHostThatWasLoud) {
  RecentQuantile quantile(0);
  for (int i = 0; i < 200; ++i) quantile.Observe(0.008);
  EXPECT_EQ(quantile.value(), 0.008);
  for (int i = 0; i < 128; ++i) quantile.Observe(0.002);
  EXPECT_EQ(quantile.value(), 0.002);
}

}  // namespace
}  // namespace loopfleet::worker
