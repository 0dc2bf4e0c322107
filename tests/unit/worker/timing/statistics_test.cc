#include "worker/timing/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace loopfleet::worker {
namespace {

// The probability that the median lies outside, summed term by term.
double MissProbability(std::size_t n, const RankInterval& interval) {
  double term = std::pow(0.5, static_cast<double>(n));
  double tail = 0;
  for (std::size_t below = 0; below <= interval.low; ++below) {
    tail += term;
    term *= static_cast<double>(n - below) / static_cast<double>(below + 1);
  }
  return 2 * tail;
}

TEST(StatisticsTest, IntervalIsTheNarrowestThatReaches95Percent) {
  for (std::size_t n = 6; n <= 60; ++n) {
    const RankInterval interval = MedianInterval(n);
    EXPECT_EQ(interval.low + interval.high, n - 1) << n;
    EXPECT_LE(MissProbability(n, interval), 0.05) << n;
    const RankInterval narrower{.low = interval.low + 1, .high = interval.high - 1};
    EXPECT_GT(MissProbability(n, narrower), 0.05) << n;
  }
}

TEST(StatisticsTest, IntervalOfFifteenIsFourthToTwelfth) {
  const RankInterval interval = MedianInterval(15);
  EXPECT_EQ(interval.low, 3U);
  EXPECT_EQ(interval.high, 11U);
}

TEST(StatisticsTest, FewSamplesGiveTheWholeRange) {
  for (const std::size_t n : {1U, 2U, 3U, 4U, 5U}) {
    EXPECT_EQ(MedianInterval(n).low, 0U);
    EXPECT_EQ(MedianInterval(n).high, n - 1);
  }
}

TEST(StatisticsTest, MedianOfAnEvenNumberIsTheMiddle) {
  EXPECT_DOUBLE_EQ(MedianWithInterval({4.0, 3.9, 4.1, 4.2}).median, 4.05);
}

TEST(StatisticsTest, OneOutlierMovesNeitherMedianNorInterval) {
  std::vector<double> values(15, 100.0);
  values[3] = 1e9;
  const Interval interval = MedianWithInterval(values);
  EXPECT_DOUBLE_EQ(interval.median, 100);
  EXPECT_DOUBLE_EQ(interval.spread(), 0);
}

TEST(StatisticsTest, FewSamplesAreStretched) {
  // The range is 99 to 101. It is stretched 2.9 times for three samples, 1.5 for four, not for
  // five.
  EXPECT_NEAR(MedianWithInterval({99, 100, 101}).low, 97.1, 1e-9);
  EXPECT_NEAR(MedianWithInterval({99, 100, 101}).high, 102.9, 1e-9);
  EXPECT_NEAR(MedianWithInterval({99, 100, 100, 101}).high, 101.5, 1e-9);
  EXPECT_NEAR(MedianWithInterval({99, 100, 100, 100, 101}).high, 101, 1e-9);
  EXPECT_NEAR(MedianWithInterval({99, 101}).high, 112.7, 1e-9);
}

TEST(StatisticsTest, TheMedianIsInsideAStretchedInterval) {
  const Interval skew = MedianWithInterval({100, 100, 200});
  EXPECT_LE(skew.low, skew.median);
  EXPECT_GE(skew.high, skew.median);
  EXPECT_GT(skew.low, 0);
}

TEST(StatisticsTest, GradeBoundaries) {
  EXPECT_EQ(GradeOf(0), Grade::kA);
  EXPECT_EQ(GradeOf(0.01), Grade::kA);
  EXPECT_EQ(GradeOf(0.0101), Grade::kB);
  EXPECT_EQ(GradeOf(0.05), Grade::kB);
  EXPECT_EQ(GradeOf(0.0501), Grade::kC);
}

}  // namespace
}  // namespace loopfleet::worker
