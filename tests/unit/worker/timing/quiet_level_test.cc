#include "worker/timing/quiet_level.h"

#include <gtest/gtest.h>

#include <limits>

namespace loopfleet::worker {
namespace {

TEST(QuietLevelTest, IsKnownFromTheThirdOn) {
  QuietLevel level;
  level.Observe(9'000);
  level.Observe(9'050);
  EXPECT_EQ(level.cycles(), 0);
  level.Observe(9'100);
  EXPECT_EQ(level.cycles(), 9'000);
}

TEST(QuietLevelTest, ContentionAtTheStartIsForgottenAsSoonAsItWasQuiet) {
  QuietLevel level;
  for (int i = 0; i < 100; ++i) level.Observe(11'000);
  EXPECT_EQ(level.cycles(), 11'000);
  for (int i = 0; i < 64; ++i) level.Observe(9'000);
  EXPECT_EQ(level.cycles(), 9'000);
}

// However many there come to be: the clock is misjudged for one in a hundred.
TEST(QuietLevelTest, ReadingsThatAreTooSmallMoveNothing) {
  QuietLevel level;
  for (int i = 0; i < 100'000; ++i) level.Observe(i % 50 == 0 ? 7'500 + i % 1'000 : 9'000);
  EXPECT_EQ(level.cycles(), 9'000);
}

TEST(QuietLevelTest, ContentionForHoursDoesNotBecomeQuiet) {
  QuietLevel level;
  for (int i = 0; i < 40; ++i) level.Observe(9'000);
  for (int i = 0; i < 100'000; ++i) level.Observe(11'000);
  EXPECT_EQ(level.cycles(), 9'000);
}

TEST(QuietLevelTest, OneQuietMomentInSixIsEnough) {
  QuietLevel level;
  for (int i = 0; i < 320; ++i) level.Observe(i % 6 == 0 ? 9'000 : 11'000 + i);
  EXPECT_EQ(level.cycles(), 9'000);
}

TEST(QuietLevelTest, SenselessReadingsAreLeftOut) {
  QuietLevel level;
  for (int i = 0; i < 3; ++i) level.Observe(9'000);
  level.Observe(0);
  level.Observe(-1);
  level.Observe(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(level.cycles(), 9'000);
}

}  // namespace
}  // namespace loopfleet::worker
