#include "common/wire/transport/arrivals.h"

#include <gtest/gtest.h>

namespace loopfleet::wire {
namespace {

using namespace std::chrono_literals;

constexpr Arrivals::Limits kLimits{.at_once = 10, .per_second = 2};

class ArrivalsTest : public ::testing::Test {
 protected:
  void Arrive(int count) {
    for (int i = 0; i < count; ++i) arrivals_.Arrived(now_);
  }
  void Succeed(int count) {
    for (int i = 0; i < count; ++i) arrivals_.Succeeded(now_);
  }
  Admit WhoAfter(Nanos time) {
    now_ += time;
    return arrivals_.WhoAt(now_);
  }

  Instant now_{};
  Arrivals arrivals_{kLimits, now_};
};

TEST_F(ArrivalsTest, StrangersWaitOnceAllPlacesAreTaken) {
  Arrive(9);
  EXPECT_EQ(WhoAfter(0s), Admit::kEverybody);
  Arrive(1);
  EXPECT_EQ(WhoAfter(0s), Admit::kKnown);
  EXPECT_EQ(WhoAfter(400ms), Admit::kKnown);
  EXPECT_EQ(WhoAfter(200ms), Admit::kEverybody) << "two places come back in a second";
}

TEST_F(ArrivalsTest, KnownAddressesHaveAsManyPlacesAgain) {
  Arrive(19);
  EXPECT_EQ(WhoAfter(0s), Admit::kKnown);
  Arrive(1);
  EXPECT_EQ(WhoAfter(0s), Admit::kNobody);
  EXPECT_EQ(WhoAfter(500ms), Admit::kKnown);
  EXPECT_EQ(WhoAfter(4500ms), Admit::kKnown);
  EXPECT_EQ(WhoAfter(500ms), Admit::kEverybody);
}

// However many: what succeeds costs nothing.
TEST_F(ArrivalsTest, AFleetThatComesBackPasses) {
  for (int wave = 0; wave < 100; ++wave) {
    Arrive(9);
    EXPECT_EQ(WhoAfter(0s), Admit::kEverybody) << wave;
    Succeed(9);
  }
  EXPECT_TRUE(arrivals_.IsCalm(now_));
}

TEST_F(ArrivalsTest, SuccessesMakeNoMorePlaces) {
  Succeed(100);
  Arrive(10);
  EXPECT_EQ(WhoAfter(0s), Admit::kKnown);
}

// However many come in between two looks, known addresses are kept out for seconds, not minutes.
TEST_F(ArrivalsTest, ADebtIsBounded) {
  Arrive(100'000);
  EXPECT_EQ(WhoAfter(5s), Admit::kNobody);
  EXPECT_EQ(WhoAfter(1s), Admit::kKnown);
  EXPECT_EQ(WhoAfter(5s), Admit::kEverybody);
}

// Over a minute of a flood that takes whatever it is given, one arrival at a time.
TEST_F(ArrivalsTest, AFloodGetsWhatComesBackByItself) {
  int admitted = 0;
  for (int look = 0; look < 6000; ++look) {
    if (WhoAfter(10ms) != Admit::kEverybody) continue;
    Arrive(3);
    admitted += 3;
  }
  EXPECT_LE(admitted, 10 + 2 * 60 + 3);
  EXPECT_GE(admitted, 2 * 60);
}

TEST_F(ArrivalsTest, ItIsCalmWhenEveryPlaceIsFree) {
  EXPECT_TRUE(arrivals_.IsCalm(now_));
  Arrive(1);
  EXPECT_FALSE(arrivals_.IsCalm(now_));
  EXPECT_TRUE(arrivals_.IsCalm(now_ + 500ms));
}

}  // namespace
}  // namespace loopfleet::wire
