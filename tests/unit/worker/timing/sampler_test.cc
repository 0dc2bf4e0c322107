#include "worker/timing/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/worker/timing/scripted_core.h"
#include "worker/timing/statistics.h"

namespace loopfleet::worker {
namespace {

constexpr double kQuietCycles = 9'000;

SamplingPolicy WithQuietLevel() { return {.quiet_cycles = kQuietCycles}; }

std::size_t CountOf(const Samples& samples, std::uint8_t flag) {
  return static_cast<std::size_t>(std::ranges::count(samples.flags, flag));
}

TEST(SamplerTest, FastKernelsFillTheRepetition) {
  for (const std::uint64_t run_ns : {1U, 7U, 100U, 999U, 5'210U, 59'999U}) {
    ScriptedCore core{.run_ns = run_ns};
    const Samples samples = core.Take(WithQuietLevel());
    EXPECT_GE(samples.iterations * run_ns, 60'000U) << run_ns;
    EXPECT_LE(samples.iterations * run_ns, 60'000U * 12 / 10 + run_ns) << run_ns;
    for (const double ns : samples.ns) EXPECT_DOUBLE_EQ(ns, static_cast<double>(run_ns));
  }
}

TEST(SamplerTest, EqualSamplesAreEnoughOnceEnoughTimeWasSampled) {
  ScriptedCore core;
  const Samples samples = core.Take(WithQuietLevel());
  EXPECT_EQ(samples.end, SamplingEnd::kDone);
  EXPECT_EQ(samples.ns.size(), 10U);  // of 60 us: 600 us
  EXPECT_EQ(CountOf(samples, kSampleAccepted), 10U);
  EXPECT_DOUBLE_EQ(samples.probe_cycles, kQuietCycles);
  EXPECT_DOUBLE_EQ(samples.clock_before_mhz, 3000);
  EXPECT_DOUBLE_EQ(samples.slowdown, 1);
}

TEST(SamplerTest, UnequalOnesGoOnToTheMost) {
  ScriptedCore core;
  core.extra_ns = [](std::size_t repetition) { return repetition % 3 * 3'000; };  // by 0, 5, 10 %
  EXPECT_EQ(core.Take(WithQuietLevel()).ns.size(), 15U);
}

TEST(SamplerTest, SlowKernelsNeedFewRuns) {
  ScriptedCore core{.run_ns = 3'000'000};
  const Samples samples = core.Take(WithQuietLevel());
  EXPECT_EQ(samples.iterations, 1U);
  EXPECT_EQ(samples.ns.size(), 3U);
  EXPECT_EQ(core.runs(), 4U);  // one to find out
}

TEST(SamplerTest, TheBudgetEndsUnequalSamplesOfSlowKernels) {
  ScriptedCore core{.run_ns = 1'000'000};
  core.extra_ns = [](std::size_t repetition) { return repetition % 2 * 100'000; };
  const Samples samples = core.Take(WithQuietLevel());
  EXPECT_GE(samples.ns.size(), 3U);
  EXPECT_LE(samples.ns.size(), 5U);  // 5 ms
}

TEST(SamplerTest, ButThereAreAlwaysTheLeast) {
  ScriptedCore core{.run_ns = 3'000'000'000};
  EXPECT_EQ(core.Take(WithQuietLevel()).ns.size(), 3U);
}

// Contended and quiet phases of 300 us in turn.
TEST(SamplerTest, ContendedRepetitionsAreFlaggedAndRepeated) {
  ScriptedCore core;
  core.slowdown = [](std::uint64_t now) { return now / 300'000 % 2 == 0 ? 1.0 : 1.15; };
  const Samples samples = core.Take(WithQuietLevel());
  EXPECT_GE(CountOf(samples, kSampleAccepted), 10U);
  EXPECT_GE(CountOf(samples, kSampleContended), 4U);
  for (std::size_t i = 0; i < samples.ns.size(); ++i) {
    if (samples.flags[i] != kSampleAccepted) continue;
    EXPECT_NEAR(samples.ns[i], 5'000, 10) << i;
  }
  EXPECT_NEAR(samples.slowdown, 1.15, 0.01);
  const auto measurement = Summarise(samples, 0);
  ASSERT_TRUE(measurement);
  EXPECT_NEAR(measurement->elapsed_ns, 5'000, 1);
  EXPECT_EQ(measurement->grade, Grade::kA);
}

TEST(SamplerTest, ANeighbourThatStaysEndsThePatienceAndTheGrade) {
  ScriptedCore core;
  core.slowdown = [](std::uint64_t) { return 1.15; };
  const Samples samples = core.Take(WithQuietLevel());
  EXPECT_EQ(CountOf(samples, kSampleAccepted), 0U);
  EXPECT_GE(samples.ns.size(), 100U);  // 25 ms of trying
  const auto measurement = Summarise(samples, 0);
  ASSERT_TRUE(measurement);
  EXPECT_EQ(measurement->grade, Grade::kC);
  // All samples agree, and all are 15 % too slow: the interval says so.
  EXPECT_LE(measurement->elapsed_low_ns, 5'001);
  EXPECT_GE(measurement->elapsed_high_ns, 5'749);
}

TEST(SamplerTest, WithoutAKnownLevelTheQuickestProbeIsTheLevel) {
  ScriptedCore core;
  core.slowdown = [](std::uint64_t now) { return now < 1'400'000 ? 1.3 : 1.0; };
  const Samples samples = core.Take({});
  EXPECT_GE(CountOf(samples, kSampleContended), 3U);  // found out later, and flagged then
  EXPECT_GE(CountOf(samples, kSampleAccepted), 10U);
}

TEST(SamplerTest, ASlowerClockIsNotContention) {
  ScriptedCore core;
  core.clock_mhz = [](std::uint64_t) { return 2400.0; };
  const Samples samples = core.Take(WithQuietLevel());
  EXPECT_EQ(CountOf(samples, kSampleContended), 0U);
  const auto measurement = Summarise(samples, 3000);
  ASSERT_TRUE(measurement);
  EXPECT_NEAR(measurement->elapsed_ns, 5'000, 5);  // at the reference clock
  EXPECT_DOUBLE_EQ(ClockMhz(*measurement), 2400);
}

TEST(SamplerTest, AClockThatMovesIsSeenAndCostsTheGrade) {
  ScriptedCore core;
  core.clock_mhz = [](std::uint64_t now) { return now < 1'300'000 ? 3000.0 : 2940.0; };
  const auto measurement = Summarise(core.Take(WithQuietLevel()), 3000);
  ASSERT_TRUE(measurement);
  EXPECT_TRUE(ClockMoved(*measurement));
  EXPECT_EQ(measurement->grade, Grade::kB);
}

TEST(SamplerTest, OneOffSpikesThatNoProbeSeesMoveNothing) {
  ScriptedCore core;
  core.extra_ns = [](std::size_t repetition) {
    return repetition == 4 || repetition == 9 ? 400'000 : 0;
  };
  const auto measurement = Summarise(core.Take(WithQuietLevel()), 0);
  ASSERT_TRUE(measurement);
  EXPECT_NEAR(measurement->elapsed_ns, 5'000, 1);
  EXPECT_EQ(measurement->grade, Grade::kA);
  EXPECT_GT(measurement->elapsed_mean_ns, 5'500);
}

TEST(SamplerTest, PreemptedRepetitionsDoNotCount) {
  ScriptedCore core{.run_ns = 1'000'000};
  core.preempts = [](std::size_t repetition) { return repetition % 2 == 1; };
  const Samples samples = core.Take(WithQuietLevel());
  EXPECT_GE(CountOf(samples, kSamplePreempted), 2U);
  const auto measurement = Summarise(samples, 0);
  ASSERT_TRUE(measurement);
  EXPECT_NEAR(measurement->elapsed_ns, 1e6, 1);
  EXPECT_EQ(measurement->grade, Grade::kA);
}

TEST(SamplerTest, AnInterruptedFirstRunDoesNotMakeTheKernelSlow) {
  ScriptedCore core;
  core.preempts = [](std::size_t call) { return call == 0; };
  EXPECT_GE(core.Take(WithQuietLevel()).iterations, 12U);
}

// Every other run is interrupted for longer than the whole patience.
TEST(SamplerTest, ASystemThatTakesThePatienceIsOutlasted) {
  ScriptedCore core;
  core.extra_ns = [](std::size_t call) { return call % 2 == 1 ? 40'000'000 : 0; };
  core.preempts = [](std::size_t call) { return call % 2 == 1; };
  const Samples samples = core.Take(WithQuietLevel());
  EXPECT_EQ(CountOf(samples, kSampleAccepted), 3U);
  const auto measurement = Summarise(samples, 0);
  ASSERT_TRUE(measurement);
  EXPECT_NEAR(measurement->elapsed_ns, 5'000, 1);
}

TEST(SamplerTest, GoesOnWhileTheFigureWouldBeRefused) {
  ScriptedCore core{.run_ns = 1'000'000};
  core.extra_ns = [](std::size_t repetition) { return repetition == 3 ? 7'000'000 : 0; };  // unseen
  const Samples samples = core.Take(WithQuietLevel());
  EXPECT_TRUE(Summarise(samples, 0));
  EXPECT_GE(samples.ns.size(), 9U);  // from 9 on the interval leaves the extremes out
}

// Slower and slower, as a core that heats up: the interval is wide, and the grade says so.
TEST(SamplerTest, DriftWithinAMeasurementWidensTheInterval) {
  ScriptedCore core;
  core.extra_ns = [](std::size_t repetition) {
    return repetition * 1'200;
  };  // 2 % of a repetition each time
  const auto measurement = Summarise(core.Take(WithQuietLevel()), 0);
  ASSERT_TRUE(measurement);
  EXPECT_NE(measurement->grade, Grade::kA);
}

TEST(SamplerTest, PrecisionStopsEarlyAndGoesOnForLong) {
  ScriptedCore noisy;
  noisy.extra_ns = [](std::size_t repetition) { return repetition * 7 % 11 * 600; };  // 0 to 10 %
  SamplingPolicy fine = PolicyFor({.precision = 0.01});
  fine.quiet_cycles = kQuietCycles;
  const Samples many = noisy.Take(fine);
  EXPECT_GT(many.ns.size(), 15U);
  EXPECT_LE(Summarise(many, 0)->spread, 0.01);

  ScriptedCore again;
  again.extra_ns = noisy.extra_ns;
  SamplingPolicy coarse = PolicyFor({.precision = 0.1});
  coarse.quiet_cycles = kQuietCycles;
  EXPECT_LE(again.Take(coarse).ns.size(), 11U);
}

TEST(SamplerTest, TheJobsBudgetBoundsItAll) {
  ScriptedCore core;
  core.slowdown = [](std::uint64_t) { return 1.5; };  // never accepted
  SamplingPolicy policy = PolicyFor({.precision = 0.001, .budget_ms = 2});
  policy.quiet_cycles = kQuietCycles;
  const std::uint64_t start = core.now;
  core.Take(policy);
  EXPECT_LE(core.now - start, 2'400'000U);
}

TEST(SamplerTest, CutsEarlyWhatIsSurelySlower) {
  ScriptedCore core{.run_ns = 2'000'000};
  SamplingPolicy policy = PolicyFor({.cut_above_ns = 1'000'000});
  policy.quiet_cycles = kQuietCycles;
  const Samples samples = core.Take(policy);
  EXPECT_EQ(samples.end, SamplingEnd::kCut);
  EXPECT_EQ(samples.ns.size(), 2U);
}

TEST(SamplerTest, ContentionAloneCutsNothing) {
  ScriptedCore core{.run_ns = 900'000};
  core.slowdown = [](std::uint64_t) { return 1.5; };  // 1.35 ms a run, and contended
  SamplingPolicy policy = PolicyFor({.cut_above_ns = 1'000'000});
  policy.quiet_cycles = kQuietCycles;
  EXPECT_EQ(core.Take(policy).end, SamplingEnd::kDone);
}

TEST(SamplerTest, WhatIsNearTheBoundIsMeasured) {
  ScriptedCore core{.run_ns = 1'005'000};
  core.extra_ns = [](std::size_t repetition) { return repetition % 2 * 20'000; };
  SamplingPolicy policy = PolicyFor({.cut_above_ns = 1'010'000});
  policy.quiet_cycles = kQuietCycles;
  EXPECT_EQ(core.Take(policy).end, SamplingEnd::kDone);
}

TEST(SamplerTest, TheBoundIsAtTheReferenceClock) {
  ScriptedCore core{.run_ns = 900'000};
  core.clock_mhz = [](std::uint64_t) { return 1500.0; };  // 1.8 ms on the wall
  SamplingPolicy policy = PolicyFor({.cut_above_ns = 1'000'000});
  policy.quiet_cycles = kQuietCycles;
  policy.reference_mhz = 3000;
  EXPECT_EQ(core.Take(policy).end, SamplingEnd::kDone);
}

TEST(SamplerTest, ColdRunsAreSingleAndEvictedBefore) {
  ScriptedCore core;
  SamplingPolicy policy = PolicyFor({.cache = CacheState::kCold});
  policy.quiet_cycles = kQuietCycles;
  const Samples samples = core.Take(policy);
  EXPECT_EQ(samples.iterations, 1U);
  EXPECT_EQ(core.evictions, samples.ns.size());
  EXPECT_EQ(core.runs(), samples.ns.size());
}

TEST(SamplerTest, AClockThatStandsStillEndsWithPositiveSamples) {
  ScriptedCore core{.run_ns = 0, .probe_ns = 1};
  const Samples samples = core.Take({.max_iterations = 1'000, .max_samples = 50});
  EXPECT_EQ(samples.iterations, 1'000U);
  for (const double ns : samples.ns) EXPECT_GT(ns, 0);
}

TEST(SamplerTest, TheSupervisorWaitsLongEnough) {
  for (const std::uint64_t run_ns : {5'000U, 3'000'000U, 300'000'000U}) {
    for (const double slow : {1.0, 1.2}) {
      ScriptedCore core{.run_ns = run_ns};
      core.slowdown = [slow](std::uint64_t) { return slow; };
      const std::uint64_t start = core.now;
      core.Take(WithQuietLevel());
      EXPECT_LE(core.now - start,
                LongestNs(WithQuietLevel(),
                          static_cast<std::uint64_t>(static_cast<double>(run_ns) * slow)))
          << run_ns;
    }
  }
}

}  // namespace
}  // namespace loopfleet::worker
