#include "common/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace loopfleet {
namespace {

TEST(SplitMix64, IsThePublishedSequence) {
  // The first values for seed 1234567, from the reference implementation.
  SplitMix64 random(1234567);
  for (const std::uint64_t expected :
       {6457827717110365317ULL, 3203168211198807973ULL, 9817491932198370423ULL,
        4593380528125082431ULL, 16408922859458223821ULL}) {
    EXPECT_EQ(random.Next(), expected);
  }
}

TEST(SplitMix64, BelowStaysBelowAndReachesEverything) {
  SplitMix64 random(1);
  std::array<int, 7> seen{};
  for (int i = 0; i < 7000; ++i) {
    const std::uint64_t value = random.Below(7);
    ASSERT_LT(value, 7u);
    ++seen[value];
  }
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(random.Below(1), 0u);
  for (int i = 0; i < 100; ++i) EXPECT_LT(random.Below(~0ULL), ~0ULL);
}

TEST(OsRandomness, FillsEveryByte) {
  EXPECT_NE(OsRandom64(), OsRandom64());
  // All 4,096 bytes become nonzero within 8 rounds, except in one of 2^52 runs.
  std::vector<std::uint8_t> bytes(4096), ever(4096);
  for (int round = 0; round < 8; ++round) {
    FillWithOsRandomness(bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) ever[i] |= bytes[i];
  }
  EXPECT_TRUE(std::ranges::all_of(ever, [](std::uint8_t byte) { return byte != 0; }));
  FillWithOsRandomness({});
}

}  // namespace
}  // namespace loopfleet
