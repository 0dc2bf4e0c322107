#include "worker/timing/clock_reading.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/base/random.h"

namespace loopfleet::worker {
namespace {

struct Read {
  double mhz = 0;
  int chains = 0;
};

// Reads from these chains in turn; the last one goes on.
Read ReadFrom(const std::vector<double>& chains, double last_mhz = 0) {
  ClockReading clock(last_mhz);
  int count = 0;
  do {
    const auto at = std::min<std::size_t>(static_cast<std::size_t>(count), chains.size() - 1);
    clock.Add(chains[at]);
    ++count;
  } while (!clock.is_sure());
  return {.mhz = clock.mhz(), .chains = count};
}

TEST(ClockReadingTest, OneChainIsEnoughWhereTheLastReadingConfirmsIt) {
  const Read read = ReadFrom({3699}, 3700);
  EXPECT_EQ(read.chains, 1);
  EXPECT_EQ(read.mhz, 3699);
}

TEST(ClockReadingTest, TwoChainsConfirmEachOtherWithoutALastReadingOrAfterTheClockHasFallen) {
  EXPECT_EQ(ReadFrom({3691, 3700}).chains, 2) << "they differ by one tick of the host's clock";
  const Read fallen = ReadFrom({3300, 3301}, 3700);
  EXPECT_EQ(fallen.chains, 2);
  EXPECT_EQ(fallen.mhz, 3301);
}

TEST(ClockReadingTest, ChainsThatWereInterruptedAreNoReading) {
  EXPECT_EQ(ReadFrom({460, 3050, 3699}, 3700).mhz, 3699);
  const Read first = ReadFrom({460, 3600, 3700, 3700});
  EXPECT_EQ(first.mhz, 3700);
  EXPECT_EQ(first.chains, 4);
  EXPECT_EQ(ReadFrom({3600, 3601, 3700}).mhz, 3601) << "two that agree cannot be told from a clock";
}

TEST(ClockReadingTest, AnInterruptedChainIsNoReadingAfterTheClockHasRisen) {
  EXPECT_EQ(ReadFrom({3679, 3790, 3790}, 3390).mhz, 3790);
}

TEST(ClockReadingTest, ItEndsWhereNoChainConfirmsAnother) {
  ClockReading clock(3700);
  double mhz = 1'000;
  while (!clock.is_sure()) clock.Add(mhz += 50);
  EXPECT_EQ(clock.mhz(), 1'000 + 50 * ClockReading::kMostChains);
}

// Half of all chains are interrupted, each by its own time.
TEST(ClockReadingTest, RandomInterruptsLeaveTheClock) {
  SplitMix64 random(20);
  int wrong = 0;
  constexpr int kReadings = 10'000;
  for (int i = 0; i < kReadings; ++i) {
    ClockReading clock(i % 2 == 0 ? 0 : 3700);
    while (!clock.is_sure()) {
      const double took_us =
          4 + (random.Below(2) == 0 ? 0 : 0.05 + static_cast<double>(random.Below(30'000)) / 1e3);
      clock.Add(3700 * 4 / took_us);
    }
    wrong += clock.mhz() < 0.99 * 3700 ? 1 : 0;
  }
  EXPECT_LT(wrong, kReadings / 100) << "a clock that is 1 % too low makes a figure 1 % too quick";
}

}  // namespace
}  // namespace loopfleet::worker
