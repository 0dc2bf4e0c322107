#include "worker/timing/contention_baseline.h"

#include <gtest/gtest.h>

#include <limits>

namespace loopfleet::worker {
namespace {

TEST(ContentionBaselineTest, IsKnownFromTheThirdOn) {
  ContentionBaseline level;
  level.Observe(9'000);
  level.Observe(9'050);
  EXPECT_EQ(level.cycles(), 0);
  level.Observe(9'100);
  EXPECT_EQ(level.cycles(), 9'000);
}

TEST(ContentionBaselineTest, ContentionAtTheStartIsForgottenAsSoonAsItWasQuiet) {
  ContentionBaseline level;
  for (int i = 0; i < 100; ++i) level.Observe(11'000);
  EXPECT_EQ(level.cycles(), 11'000);
  for (int i = 0; i < 64; ++i) level.Observe(9'000);
  EXPECT_EQ(level.cycles(), 9'000);
}

// Holds for any number of readings. On real cores one in a hundred is too small, because the clock
// was misjudged.
TEST(ContentionBaselineTest, ReadingsThatAreTooSmallMoveNothing) {
  ContentionBaseline level;
  for (int i = 0; i < 100'000; ++i) level.Observe(i % 50 == 0 ? 7'500 + i % 1'000 : 9'000);
  EXPECT_EQ(level.cycles(), 9'000);
}

TEST(ContentionBaselineTest, ContentionForHoursDoesNotBecomeQuiet) {
  ContentionBaseline level;
  for (int i = 0; i < 40; ++i) level.Observe(9'000);
  for (int i = 0; i < 100'000; ++i) level.Observe(11'000);
  EXPECT_EQ(level.cycles(), 9'000);
}

TEST(ContentionBaselineTest, OneQuietMomentInSixIsEnough) {
  ContentionBaseline level;
  for (int i = 0; i < 320; ++i) level.Observe(i % 6 == 0 ? 9'000 : 11'000 + i);
  EXPECT_EQ(level.cycles(), 9'000);
}

// A worker that starts beside a permanent neighbour never sees its core quiet.
TEST(OnQuietCoreTest, NoQuietCoreIsBetweenTwoUnitsAndOne) {
  constexpr double kTwoUnits = 5'000;
  EXPECT_EQ(QuietCoreCycles(5'100, kTwoUnits), 5'100);
  EXPECT_EQ(QuietCoreCycles(4'950, kTwoUnits), 4'950);
  EXPECT_EQ(QuietCoreCycles(4'400, kTwoUnits), 4'900) << "a misjudged clock";
  EXPECT_EQ(QuietCoreCycles(0, kTwoUnits), 0) << "not learned yet";
  for (const double contended : {5'300.0, 6'000.0, 8'300.0, 9'700.0}) {
    EXPECT_EQ(QuietCoreCycles(contended, kTwoUnits), 5'150) << contended;
  }
  EXPECT_EQ(QuietCoreCycles(10'200, kTwoUnits), 10'200);
  EXPECT_EQ(QuietCoreCycles(13'000, kTwoUnits), 10'300);
  EXPECT_EQ(QuietCoreCycles(13'000, 0), 13'000);  // unknown
}

TEST(ContentionBaselineTest, SenselessReadingsAreLeftOut) {
  ContentionBaseline level;
  for (int i = 0; i < 3; ++i) level.Observe(9'000);
  level.Observe(0);
  level.Observe(-1);
  level.Observe(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(level.cycles(), 9'000);
}

}  // namespace
}  // namespace loopfleet::worker
