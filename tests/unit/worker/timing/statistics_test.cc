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

Measurement Summary(const std::vector<double>& values, std::uint64_t iterations = 1) {
  Samples samples{.iterations = iterations, .ns = values};
  samples.flags.assign(values.size(), kSampleAccepted);
  return Summarise(samples, 0).value();
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
  const Measurement m = Summary(values, 7);
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
  EXPECT_DOUBLE_EQ(Summary({4.0, 3.9, 4.1, 4.2}).elapsed_ns, 4.05);
}

TEST(StatisticsTest, OneOutlierMovesNeitherMedianNorInterval) {
  std::vector<double> values(15, 100.0);
  values[3] = 1e9;
  const Measurement m = Summary(values);
  EXPECT_DOUBLE_EQ(m.elapsed_ns, 100);
  EXPECT_DOUBLE_EQ(m.spread, 0);
  EXPECT_EQ(m.grade, Grade::kA);
  EXPECT_GT(m.elapsed_mean_ns, 1e7);
}

TEST(StatisticsTest, FewSamplesAreStretched) {
  // The range is 99 to 101; of three samples it is stretched 2.9 times, of four 1.5, of five not.
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

TEST(StatisticsTest, ContendedSamplesAreKeptAndDoNotCount) {
  Samples samples{.iterations = 1, .ns = {100, 100, 100, 100, 100, 100, 150, 160}};
  samples.flags = {0, 0, 0, 0, 0, 0, kSampleContended, kSampleContended};
  const auto m = Summarise(samples, 0);
  ASSERT_TRUE(m);
  EXPECT_DOUBLE_EQ(m->elapsed_mean_ns, 100);
  EXPECT_EQ(m->samples_ns.size(), 8U);
  EXPECT_EQ(AcceptedSamples(*m), 6U);
}

TEST(StatisticsTest, TooFewAcceptedIsGradeCWhateverTheyAgreeOn) {
  Samples samples{.iterations = 1, .ns = std::vector<double>(20, 115.0), .slowdown = 1.15};
  samples.flags.assign(20, kSampleContended);
  samples.flags[3] = samples.flags[4] = kSampleAccepted;
  const auto m = Summarise(samples, 0);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->grade, Grade::kC);
  EXPECT_NEAR(m->elapsed_low_ns, 100, 1e-9);  // it may be as much too slow as the probes were
}

TEST(StatisticsTest, AFigureThatSaysNothingIsRefused) {
  Samples samples{.iterations = 1, .ns = {100, 900, 100, 900, 500}};
  samples.flags.assign(5, kSampleAccepted);
  const auto m = Summarise(samples, 0);
  ASSERT_FALSE(m);
  EXPECT_EQ(m.error().code, FailureCode::kUnstableTiming);
}

TEST(StatisticsTest, TimesAreStatedAtTheReferenceClock) {
  Samples samples{.iterations = 1, .ns = std::vector<double>(10, 100.0)};
  samples.flags.assign(10, kSampleAccepted);
  samples.clock_before_mhz = 2985;
  samples.clock_after_mhz = 3015;
  EXPECT_DOUBLE_EQ(Summarise(samples, 2500)->elapsed_ns, 120);
  EXPECT_DOUBLE_EQ(Summarise(samples, 2500)->samples_ns[0], 120);
  EXPECT_DOUBLE_EQ(Summarise(samples, 0)->elapsed_ns, 100);
  samples.clock_after_mhz = 0;
  EXPECT_DOUBLE_EQ(Summarise(samples, 2500)->elapsed_ns, 100);
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
