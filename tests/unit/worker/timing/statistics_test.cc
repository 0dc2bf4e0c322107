#include "worker/timing/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace loopfleet::worker {
namespace {

// The chance that the median lies outside, added up term by term.
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

TEST(StatisticsTest, SummaryOfKnownSamples) {
  std::vector<double> values(15);
  std::iota(values.begin(), values.end(), 100.0);  // 100 .. 114
  std::swap(values[0], values[14]);                // the order they were taken in is kept
  const Measurement m = Summarise({.iterations = 7, .ns = values});
  EXPECT_DOUBLE_EQ(m.elapsed_ns, 107);
  EXPECT_DOUBLE_EQ(m.elapsed_low_ns, 103);
  EXPECT_DOUBLE_EQ(m.elapsed_high_ns, 111);
  EXPECT_DOUBLE_EQ(m.elapsed_min_ns, 100);
  EXPECT_DOUBLE_EQ(m.elapsed_mean_ns, 107);
  EXPECT_DOUBLE_EQ(m.spread, 8.0 / (2 * 107));
  EXPECT_EQ(m.grade, Grade::kB);
  EXPECT_EQ(m.iterations_per_sample, 7U);
  EXPECT_EQ(m.samples_ns, values);
  EXPECT_EQ(m.sample_flags, std::vector<std::uint8_t>(15, kSampleAccepted));
}

TEST(StatisticsTest, MedianOfAnEvenNumberIsTheMiddle) {
  EXPECT_DOUBLE_EQ(Summarise({.iterations = 1, .ns = {4, 1, 2, 10}}).elapsed_ns, 3);
}

TEST(StatisticsTest, OneOutlierMovesNeitherMedianNorInterval) {
  std::vector<double> values(15, 100.0);
  values[3] = 1e9;
  const Measurement m = Summarise({.iterations = 1, .ns = values});
  EXPECT_DOUBLE_EQ(m.elapsed_ns, 100);
  EXPECT_DOUBLE_EQ(m.spread, 0);
  EXPECT_EQ(m.grade, Grade::kA);
  EXPECT_GT(m.elapsed_mean_ns, 1e7);
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
