#include "worker/timing/quiet_level.h"

#include <gtest/gtest.h>

#include <limits>

namespace loopfleet::worker {
namespace {

TEST(QuietLevelTest, IsTheThirdSmallest) {
  QuietLevel level;
  level.Observe(9'000);
  level.Observe(9'050);
  EXPECT_EQ(level.cycles(), 0);  // not known yet
  level.Observe(12'000);
  EXPECT_EQ(level.cycles(), 12'000);
  level.Observe(9'100);
  EXPECT_EQ(level.cycles(), 9'100);
}

TEST(QuietLevelTest, OneReadingThatIsTooSmallMovesNothing) {
  QuietLevel level;
  for (int i = 0; i < 10; ++i) level.Observe(9'000);
  level.Observe(4'000);
  EXPECT_EQ(level.cycles(), 9'000);
}

TEST(QuietLevelTest, ContentionForHoursDoesNotBecomeQuiet) {
  QuietLevel level;
  for (int i = 0; i < 5; ++i) level.Observe(9'000);
  for (int i = 0; i < 100'000; ++i) level.Observe(11'000);
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
