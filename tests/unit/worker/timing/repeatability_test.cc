#include "worker/timing/repeatability.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

TEST(Repeatability, IsCautiousUntilItHasSeenEnough) {
  Repeatability repeatability;
  const double unknown = repeatability.within();
  EXPECT_GT(unknown, 0.005);
  EXPECT_LT(unknown, 0.01) << "figures may still be of grade A";
  for (int i = 0; i < 19; ++i) repeatability.Observe(0.001);
  EXPECT_EQ(repeatability.within(), unknown);
  repeatability.Observe(0.001);
  EXPECT_EQ(repeatability.within(), 0.001);
}

TEST(Repeatability, IsWhatNearlyAllDifferencesStayBelow) {
  Repeatability repeatability;
  for (int i = 1; i <= 100; ++i) repeatability.Observe(0.0001 * i);
  EXPECT_NEAR(repeatability.within(), 0.0095, 0.0001);
}

TEST(Repeatability, ForgetsAHostThatWasLoud) {
  Repeatability repeatability;
  for (int i = 0; i < 200; ++i) repeatability.Observe(0.008);
  EXPECT_EQ(repeatability.within(), 0.008);
  for (int i = 0; i < 128; ++i) repeatability.Observe(0.002);
  EXPECT_EQ(repeatability.within(), 0.002);
}

}  // namespace
}  // namespace loopfleet::worker
