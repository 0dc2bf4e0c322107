#include "client/search/pace.h"

#include <gtest/gtest.h>

namespace loopfleet::client {
namespace {

TEST(MostUnderWay, IsFewWhileThePaceIsHardlyKnown) {
  EXPECT_EQ(MostUnderWay(60, 0.01, 1), 4);
  EXPECT_EQ(MostUnderWay(60, 0.1, 10), 20);
}

TEST(MostUnderWay, IsASixteenthOfTheSearchOrASecond) {
  EXPECT_EQ(MostUnderWay(10, 5, 50), 10);
  EXPECT_EQ(MostUnderWay(160, 80, 800), 100);
  EXPECT_EQ(MostUnderWay(10, 5, 10), 4) << "or four, so that no worker waits";
}

TEST(MostUnderWay, IsNoMoreThanFitsIntoWhatIsLeft) {
  EXPECT_EQ(MostUnderWay(10, 9.5, 95), 5);
  EXPECT_EQ(MostUnderWay(10, 10, 100), 0);
  EXPECT_EQ(MostUnderWay(10, 11, 110), 0);
}

TEST(CutAbove, IsAFactorOfShortKernelsAndFiveMillisecondsOfLongOnes) {
  EXPECT_EQ(CutAbove(4, 1e6), 4e6);
  EXPECT_EQ(CutAbove(4, 35e6), 40e6);
  EXPECT_EQ(CutAbove(0, 35e6), 0);
}

}  // namespace
}  // namespace loopfleet::client
