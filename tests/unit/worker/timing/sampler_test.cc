#include "worker/timing/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "common/base/random.h"
#include "tests/support/scripted_core/scripted_core.h"
#include "worker/timing/measurement_rounds.h"

namespace loopfleet::worker {
namespace {

constexpr double kQuietCycles = 9'000;

SamplingPolicy WithBaseline() { return {.quiet_cycles = kQuietCycles}; }

// The figure of a single round; grade A needs two that agree.
Measurement Figure(const Samples& samples, double reference_mhz = 0) {
  MeasurementRounds rounds({}, {});
  rounds.Add(samples);
  return rounds.Summarise(reference_mhz);
}

// The policy of a job's first round.
SamplingPolicy FirstRound(const JobSpec& spec) {
  SamplingPolicy policy = MeasurementRounds(spec, {}).NextPolicy();
  policy.quiet_cycles = kQuietCycles;
  return policy;
}

std::size_t CountOf(const Samples& samples, std::uint8_t flag) {
  return static_cast<std::size_t>(std::ranges::count(samples.flags, flag));
}

TEST(SamplerTest, FastKernelsFillTheRepetition) {
  for (const std::uint64_t run_ns : {1U, 7U, 100U, 999U, 5'210U, 47'999U, 59'999U}) {
    ScriptedCore core{.run_ns = run_ns};
    const Samples samples = core.Take(WithBaseline());
    EXPECT_GE(samples.iterations * run_ns, 48'000U) << run_ns;
    EXPECT_LE(samples.iterations * run_ns, 60'000U * 12 / 10 + run_ns) << run_ns;
    for (const double ns : samples.ns) EXPECT_DOUBLE_EQ(ns, static_cast<double>(run_ns));
  }
}

TEST(SamplerTest, ALookIsOverOnceEnoughTimeWasSampled) {
  ScriptedCore core;
  const Samples samples = core.Take(WithBaseline());
  EXPECT_EQ(samples.end, SamplingEnd::kDone);
  EXPECT_EQ(samples.ns.size(), 5U);  // 60 us each: 300 us
  EXPECT_EQ(CountOf(samples, kSampleAccepted), 5U);
  EXPECT_DOUBLE_EQ(samples.probe_cycles, kQuietCycles);
  EXPECT_DOUBLE_EQ(samples.clock_before_mhz, 3000);
  EXPECT_DOUBLE_EQ(samples.slowdown, 1);
}

TEST(SamplerTest, CachesAreWarmedBeforeAnythingIsTimed) {
  ScriptedCore core;
  core.Take(WithBaseline());
  EXPECT_EQ(core.warmings, 1U);
}

TEST(SamplerTest, SlowKernelsNeedFewRunsAndWasteNone) {
  ScriptedCore core{.run_ns = 3'000'000};
  const Samples samples = core.Take(WithBaseline());
  EXPECT_EQ(samples.iterations, 1U);
  EXPECT_EQ(samples.ns.size(), 2U);
  EXPECT_EQ(core.runs(), 2U);
}

TEST(SamplerTest, WhatAnEarlierLookFoundIsNotFoundAgain) {
  ScriptedCore core;
  SamplingPolicy policy = WithBaseline();
  policy.iterations = 13;
  const Samples samples = core.Take(policy);
  EXPECT_EQ(samples.iterations, 13U);
  EXPECT_EQ(samples.ns.size(), 5U);
  EXPECT_EQ(core.runs(), 5 * 13U + 1);  // a twentieth of a repetition to warm up
}

TEST(SamplerTest, WhatIsLikelyIsOneRepetitionIfItIsTrue) {
  ScriptedCore core{.run_ns = 5'000};
  SamplingPolicy policy = WithBaseline();
  policy.estimated_run_ns = 5'100;
  const Samples samples = core.Take(policy);
  EXPECT_EQ(samples.iterations, 13U);
  EXPECT_EQ(samples.ns.size(), 5U);
  EXPECT_EQ(core.runs(), 1 + 1 + 5 * 13U);
}

// The estimate does not change the final number of runs in a repetition.
TEST(SamplerTest, WhatIsNearlyARepetitionIsOne) {
  for (const double likely_ns : {0.0, 50'000.0}) {
    ScriptedCore core{.run_ns = 50'000};
    SamplingPolicy policy = WithBaseline();
    policy.estimated_run_ns = likely_ns;
    EXPECT_EQ(core.Take(policy).iterations, 1U) << likely_ns;
  }
}

TEST(SamplerTest, WhatIsLikelyIsNotBelieved) {
  for (const double likely_ns : {1e-9, 900.0, 50'000.0, 1e12}) {
    ScriptedCore core{.run_ns = 5'000};
    SamplingPolicy policy = WithBaseline();
    policy.estimated_run_ns = likely_ns;
    const Samples samples = core.Take(policy);
    EXPECT_GE(samples.iterations * 5'000, 48'000U) << likely_ns;
    EXPECT_LE(samples.iterations, 20 * 13U) << likely_ns;
    EXPECT_DOUBLE_EQ(samples.ns.front(), 5'000) << likely_ns;
  }
}

TEST(SamplerTest, ButThereAreAlwaysTheLeast) {
  ScriptedCore core{.run_ns = 3'000'000'000};
  EXPECT_EQ(core.Take(WithBaseline()).ns.size(), 2U);
}

// Quiet and contended phases of 200 us in turn, a quiet one first.
TEST(SamplerTest, ContendedRepetitionsAreFlaggedAndRepeated) {
  ScriptedCore core;
  core.slowdown = [](std::uint64_t now) { return now / 200'000 % 2 == 1 ? 1.0 : 1.15; };
  const Samples samples = core.Take(WithBaseline());
  EXPECT_GE(CountOf(samples, kSampleAccepted), 5U);
  EXPECT_GE(CountOf(samples, kSampleContended), 3U);
  for (std::size_t i = 0; i < samples.ns.size(); ++i) {
    if (samples.flags[i] != kSampleAccepted) continue;
    EXPECT_NEAR(samples.ns[i], 5'000, 10) << i;
  }
  EXPECT_NEAR(samples.slowdown, 1.15, 0.01);
  const Measurement measurement = Figure(samples);
  EXPECT_NEAR(measurement.elapsed_ns, 5'000, 1);
}

TEST(SamplerTest, ANeighbourThatStaysEndsTheLookEarly) {
  ScriptedCore core;
  core.slowdown = [](std::uint64_t) { return 1.15; };
  const Samples samples = core.Take(WithBaseline());
  EXPECT_EQ(CountOf(samples, kSampleAccepted), 0U);
  EXPECT_EQ(samples.ns.size(), 3U);
  const Measurement measurement = Figure(samples);
  EXPECT_EQ(measurement.grade, Grade::kC);
  // All samples agree, and all are 15 % too slow: the interval says so.
  EXPECT_LE(measurement.elapsed_low_ns, 5'001);
  EXPECT_GE(measurement.elapsed_high_ns, 5'749);
}

SamplingPolicy ThatWaits() {
  SamplingPolicy policy = WithBaseline();
  policy.quiet_wait_ns = 1'000'000;
  return policy;
}

TEST(SamplerTest, ANeighbourWhoIsAboutToGoIsWaitedFor) {
  ScriptedCore core;
  core.slowdown = [](std::uint64_t now) { return now < 1'700'000 ? 1.3 : 1.0; };
  const Samples samples = core.Take(ThatWaits());
  EXPECT_EQ(CountOf(samples, kSampleAccepted), 5U);
  EXPECT_EQ(samples.ns.size(), 5U);
}

TEST(SamplerTest, OneWhoComesInBetweenCostsARepetition) {
  ScriptedCore core;
  core.slowdown = [](std::uint64_t now) {
    return now > 1'250'000 && now < 1'850'000 ? 1.3 : 1.0;
  };  // 600 us
  const Samples samples = core.Take(ThatWaits());
  EXPECT_EQ(CountOf(samples, kSampleAccepted), 5U);
  EXPECT_EQ(CountOf(samples, kSampleContended), 1U);
  EXPECT_EQ(core.warmings, 2U);  // the neighbour has used the caches
}

TEST(SamplerTest, AClockThatMovesDuringAWaitIsSeen) {
  for (const std::uint32_t vector_bytes : {0U, 64U}) {
    ScriptedCore core;
    core.slowdown = [](std::uint64_t now) {
      return now > 1'250'000 && now < 1'850'000 ? 1.3 : 1.0;
    };
    core.clock_mhz = [](std::uint64_t now) { return now < 1'250'000 ? 3000.0 : 2880.0; };
    SamplingPolicy policy = ThatWaits();
    policy.vector_bytes = vector_bytes;
    const Samples samples = core.Take(policy);
    EXPECT_GT(CountOf(samples, kSampleAccepted), 0U);
    EXPECT_TRUE(ClockMoved(Figure(samples, 3000))) << vector_bytes;
  }
}

TEST(SamplerTest, OneWhoStaysIsWaitedForOnce) {
  ScriptedCore core;
  core.slowdown = [](std::uint64_t) { return 1.15; };
  const SamplingPolicy policy = ThatWaits();
  const std::uint64_t start = core.now;
  const Samples samples = core.Take(policy);
  EXPECT_EQ(CountOf(samples, kSampleContended), 3U);
  const std::uint64_t waited = core.now - start;
  EXPECT_GE(waited, policy.quiet_wait_ns);
  EXPECT_LE(waited, policy.quiet_wait_ns + 500'000U);  // finding the runs, and three repetitions
}

// Quiet moments too short for a repetition do not keep a round waiting endlessly.
TEST(SamplerTest, AFlickeringNeighbourIsWaitedForNoLonger) {
  ScriptedCore core;
  core.slowdown = [](std::uint64_t now) { return now / 7'000 % 2 == 0 ? 1.3 : 1.0; };
  const SamplingPolicy policy = ThatWaits();
  const std::uint64_t start = core.now;
  core.Take(policy);
  EXPECT_LE(core.now - start, LongestNs(policy, 2 * core.run_ns));
}

TEST(SamplerTest, ColdRunsWaitForNobody) {
  ScriptedCore core;
  core.slowdown = [](std::uint64_t) { return 1.15; };
  SamplingPolicy policy = ThatWaits();
  policy.cache = CacheState::kCold;
  const std::uint64_t start = core.now;
  core.Take(policy);
  EXPECT_LT(core.now - start, policy.quiet_wait_ns);
}

TEST(SamplerTest, WithoutAKnownLevelTheQuickestProbeIsTheLevel) {
  ScriptedCore core;
  core.slowdown = [](std::uint64_t now) { return now < 1'250'000 ? 1.3 : 1.0; };
  const Samples samples = core.Take({.give_up_after = 1000});
  EXPECT_GE(CountOf(samples, kSampleContended), 1U);  // flagged once a quicker probe shows it
  EXPECT_GE(CountOf(samples, kSampleAccepted), 5U);
}

TEST(SamplerTest, ASlowerClockIsNotContention) {
  ScriptedCore core;
  core.clock_mhz = [](std::uint64_t) { return 2400.0; };
  const Samples samples = core.Take(WithBaseline());
  EXPECT_EQ(CountOf(samples, kSampleContended), 0U);
  const Measurement measurement = Figure(samples, 3000);
  EXPECT_NEAR(measurement.elapsed_ns, 5'000, 5);  // at the reference clock
  EXPECT_DOUBLE_EQ(ClockMhz(measurement), 2400);
}

TEST(SamplerTest, AClockThatMovesIsSeenAndCostsTheGrade) {
  ScriptedCore core;
  core.clock_mhz = [](std::uint64_t now) { return now < 1'150'000 ? 3000.0 : 2940.0; };
  const Measurement measurement = Figure(core.Take(WithBaseline()), 3000);
  EXPECT_TRUE(ClockMoved(measurement));
  EXPECT_EQ(measurement.grade, Grade::kB);
}

// Processors lower their clock for wide vectors, so it is read by a chain of such vectors.
TEST(SamplerTest, TheClockIsThatOfTheKernelsVectors) {
  for (const std::uint64_t run_ns : {5'000U, 70'000U, 3'000'000U}) {
    ScriptedCore core{.clock_of_wide = 0.9, .run_ns = run_ns};
    SamplingPolicy policy = WithBaseline();
    policy.reference_mhz = 3000;
    policy.vector_bytes = 64;
    policy.estimated_run_ns = static_cast<double>(run_ns);
    const Samples samples = core.Take(policy);
    EXPECT_DOUBLE_EQ(samples.clock_before_mhz, 2700) << run_ns;
    EXPECT_DOUBLE_EQ(samples.clock_after_mhz, 2700) << run_ns;
    const Measurement measurement = Figure(samples, 3000);
    EXPECT_NEAR(measurement.elapsed_ns, static_cast<double>(run_ns), 5);
    EXPECT_FALSE(ClockMoved(measurement));
  }
}

TEST(SamplerTest, NarrowVectorsAndColdRunsHaveTheClockOfScalars) {
  ScriptedCore core{.clock_of_wide = 0.9};
  SamplingPolicy policy = WithBaseline();
  policy.vector_bytes = 16;
  EXPECT_DOUBLE_EQ(core.Take(policy).clock_after_mhz, 3000);
  policy = FirstRound({.cache = CacheState::kCold});
  policy.vector_bytes = 64;
  EXPECT_DOUBLE_EQ(core.Take(policy).clock_after_mhz, 3000);
}

// A run of 60 ms outlasts any rise of the clock.
TEST(SamplerTest, ALongRunIsNotRunUntimedWhereTheClockIsLow) {
  ScriptedCore core{.run_ns = 60'000'000};
  core.clock_mhz = [](std::uint64_t) { return 2600.0; };
  SamplingPolicy policy = FirstRound({});
  policy.reference_mhz = 3000;
  policy.estimated_run_ns = 60e6;
  const Samples samples = core.Take(policy);
  EXPECT_EQ(core.runs(), samples.ns.size());
}

TEST(SamplerTest, PreemptedRepetitionsDoNotCount) {
  ScriptedCore core{.run_ns = 1'000'000};
  core.preempts = [](std::size_t repetition) { return repetition == 1; };
  const Samples samples = core.Take(WithBaseline());
  EXPECT_GE(CountOf(samples, kSamplePreempted), 1U);
  const Measurement measurement = Figure(samples);
  EXPECT_NEAR(measurement.elapsed_ns, 1e6, 1);
}

// An idle core speeds up within its first millisecond of work: a round begins when it has.
TEST(SamplerTest, ACoreThatSpeedsUpIsWaitedFor) {
  ScriptedCore core;
  const std::uint64_t begun = core.now;
  core.clock_mhz = [&](std::uint64_t now) {
    return 2'600 + 400 * std::min(1.0, static_cast<double>(now - begun) / 1e6);
  };
  SamplingPolicy policy = WithBaseline();
  policy.reference_mhz = 3'000;
  const Samples samples = core.Take(policy);
  EXPECT_GT(samples.clock_before_mhz, 2'950);
  EXPECT_FALSE(ClockMoved(Figure(samples, 3'000)));

  ScriptedCore steady;  // its clock stays where it is, below the reference
  steady.clock_mhz = [](std::uint64_t) { return 2'600.0; };
  EXPECT_LE(steady.Take(policy).clock_before_mhz, 2'600);
  ScriptedCore quick;
  quick.Take(policy);
  EXPECT_LT(steady.runs(), quick.runs() + 20) << "one look is enough";
}

// Where others share the core, runs that last longer than a slice of it are always interrupted.
TEST(SamplerTest, AnInterruptedLongRunHasItsProcessorTime) {
  ScriptedCore core{.run_ns = 10'000'000};
  core.preempts = [](std::size_t) { return true; };
  const Samples samples = core.Take(WithBaseline());
  EXPECT_EQ(CountOf(samples, kSamplePreempted), samples.ns.size());
  for (const double ns : samples.ns) EXPECT_NEAR(ns, 10e6, 1);
  SamplingPolicy two_threads = WithBaseline();
  two_threads.threads = 2;
  for (const double ns : core.Take(two_threads).ns) EXPECT_GE(ns, 14e6) << "of one thread only";
}

// The rounds of a kernel until no further one is due.
MeasurementRounds AllRounds(ScriptedCore& core, bool expects_long_runs) {
  MeasurementRounds rounds({}, {.expects_long_runs = expects_long_runs});
  std::optional<Nanos> wait = Nanos{0};
  while (wait) {
    core.now += static_cast<std::uint64_t>(wait->count());
    SamplingPolicy policy = rounds.NextPolicy();
    policy.quiet_cycles = kQuietCycles;
    rounds.Add(core.Take(policy));
    wait = rounds.NextIn();
  }
  return rounds;
}

// On a busy system the first figure of a slow kernel must not take half a second.
TEST(SamplerTest, ALongRunIsRepeatedAFewTimesHoweverOftenItIsInterrupted) {
  ScriptedCore always{.run_ns = 60'000'000};
  always.preempts = [](std::size_t) { return true; };
  const MeasurementRounds rounds = AllRounds(always, true);
  EXPECT_EQ(always.runs(), 5U);
  EXPECT_NEAR(rounds.Summarise(0).elapsed_ns, 60e6, 1);

  ScriptedCore contended{.run_ns = 60'000'000};
  contended.slowdown = [](std::uint64_t) { return 1.15; };
  contended.preempts = [](std::size_t call) { return call == 1; };
  AllRounds(contended, true);
  EXPECT_EQ(contended.runs(), 3U) << "they took 0.1 s";

  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SplitMix64 random(seed);
    ScriptedCore core{.run_ns = 25'000'000};
    core.preempts = [&](std::size_t) { return random.Below(10) < seed % 10; };
    AllRounds(core, true);
    EXPECT_GE(core.runs(), 3U) << seed;
    EXPECT_LE(core.runs(), 5U) << seed;
  }
}

// Every run of a second is interrupted for a few milliseconds, even on a quiet system.
TEST(SamplerTest, OfALongRunALittleMayBeAway) {
  ScriptedCore core{.run_ns = 1'000'000'000};
  core.preempts = [](std::size_t) { return true; };
  EXPECT_EQ(CountOf(core.Take(WithBaseline()), kSampleAccepted), 2U);

  ScriptedCore busy{.run_ns = 1'000'000'000};
  busy.preempts = core.preempts;
  busy.slice_ns = 6'000'000;  // 0.6 %
  const Samples samples = busy.Take(WithBaseline());
  EXPECT_EQ(CountOf(samples, kSamplePreempted), samples.ns.size());
}

TEST(SamplerTest, AnInterruptedFirstRunDoesNotMakeTheKernelSlow) {
  ScriptedCore core;
  core.preempts = [](std::size_t call) { return call == 0; };
  EXPECT_GE(core.Take(WithBaseline()).iterations, 12U);
}

// Every other run is interrupted for longer than the whole patience.
TEST(SamplerTest, ASystemThatTakesThePatienceIsOutlasted) {
  ScriptedCore core;
  core.extra_ns = [](std::size_t call) { return call % 2 == 1 ? 40'000'000 : 0; };
  core.preempts = [](std::size_t call) { return call % 2 == 1; };
  const Samples samples = core.Take(WithBaseline());
  EXPECT_EQ(CountOf(samples, kSampleAccepted), 2U);
}

// Ever slower, like a core that heats up: the interval is wide, and the grade shows it.
TEST(SamplerTest, DriftWithinAMeasurementWidensTheInterval) {
  ScriptedCore core;
  core.extra_ns = [](std::size_t repetition) {
    return repetition * 1'200;
  };  // 2 % of a repetition each time
  const Measurement measurement = Figure(core.Take(WithBaseline()));
  EXPECT_NE(measurement.grade, Grade::kA);
}

TEST(SamplerTest, PrecisionGoesOnForLong) {
  ScriptedCore noisy;
  noisy.extra_ns = [](std::size_t repetition) { return repetition * 7 % 11 * 600; };  // 0 to 10 %
  const Samples many = noisy.Take(FirstRound({.precision = 0.01}));
  EXPECT_GT(many.ns.size(), 10U);
  EXPECT_LE(Figure(many).spread, 0.01);

  ScriptedCore again;
  again.extra_ns = noisy.extra_ns;
  EXPECT_LE(again.Take(FirstRound({.precision = 0.1})).ns.size(), 6U);
}

TEST(SamplerTest, HalfOfTheJobsBudgetBoundsTheFirstRound) {
  ScriptedCore core;
  core.extra_ns = [](std::size_t repetition) { return repetition * 7 % 11 * 6'000; };  // scatters
  const std::uint64_t start = core.now;
  core.Take(FirstRound({.precision = 0.001, .budget_ms = 2}));
  EXPECT_LE(core.now - start, 1'400'000U);
}

TEST(SamplerTest, CutsEarlyWhatIsSurelySlower) {
  ScriptedCore core{.run_ns = 2'000'000};
  SamplingPolicy policy = FirstRound({.cut_above_ns = 1'000'000});
  const Samples samples = core.Take(policy);
  EXPECT_EQ(samples.end, SamplingEnd::kCut);
  EXPECT_EQ(samples.ns.size(), 2U);
}

TEST(SamplerTest, ContentionAloneCutsNothing) {
  ScriptedCore core{.run_ns = 900'000};
  core.slowdown = [](std::uint64_t) { return 1.5; };  // 1.35 ms a run, and contended
  SamplingPolicy policy = FirstRound({.cut_above_ns = 1'000'000});
  EXPECT_EQ(core.Take(policy).end, SamplingEnd::kDone);
}

TEST(SamplerTest, WhatNoContentionExplainsIsCutOnAContendedCore) {
  ScriptedCore core{.run_ns = 900'000};
  core.slowdown = [](std::uint64_t) { return 1.5; };
  const Samples samples = core.Take(FirstRound({.cut_above_ns = 100'000}));  // 13.5 times
  EXPECT_EQ(samples.end, SamplingEnd::kCut);
  EXPECT_EQ(samples.ns.size(), 2U);
  EXPECT_EQ(core.Take(FirstRound({.cut_above_ns = 200'000})).end, SamplingEnd::kDone);
}

TEST(SamplerTest, WhatIsNearTheBoundIsMeasured) {
  ScriptedCore core{.run_ns = 1'005'000};
  core.extra_ns = [](std::size_t repetition) { return repetition % 2 * 20'000; };
  SamplingPolicy policy = FirstRound({.cut_above_ns = 1'010'000});
  EXPECT_EQ(core.Take(policy).end, SamplingEnd::kDone);
}

TEST(SamplerTest, TheBoundIsAtTheReferenceClock) {
  ScriptedCore core{.run_ns = 900'000};
  core.clock_mhz = [](std::uint64_t) { return 1500.0; };  // 1.8 ms of wall time
  SamplingPolicy policy = FirstRound({.cut_above_ns = 1'000'000});
  policy.reference_mhz = 3000;
  EXPECT_EQ(core.Take(policy).end, SamplingEnd::kDone);
}

TEST(SamplerTest, ColdRunsAreSingleAndEvictedBefore) {
  ScriptedCore core{.eviction_ns = 20'000'000};
  SamplingPolicy policy = FirstRound({.cache = CacheState::kCold});
  const Samples samples = core.Take(policy);
  EXPECT_EQ(samples.iterations, 1U);
  EXPECT_EQ(core.evictions, samples.ns.size());
  EXPECT_EQ(core.runs(), samples.ns.size());
  EXPECT_GE(samples.spent_ns, core.evictions * core.eviction_ns);
}

TEST(SamplerTest, AClockThatStandsStillEndsWithPositiveSamples) {
  ScriptedCore core{.run_ns = 0, .probe_ns = 1};
  const Samples samples = core.Take({.max_iterations = 1'000, .max_samples = 50});
  EXPECT_EQ(samples.iterations, 1'000U);
  for (const double ns : samples.ns) EXPECT_GT(ns, 0);
}

TEST(SamplerTest, TheSupervisorWaitsLongEnough) {
  const SamplingPolicy policy = ThatWaits();
  for (const std::uint64_t run_ns : {5'000U, 3'000'000U, 300'000'000U}) {
    for (const double slow : {1.0, 1.2}) {
      ScriptedCore core{.run_ns = run_ns};
      core.slowdown = [slow](std::uint64_t) { return slow; };
      const std::uint64_t start = core.now;
      core.Take(policy);
      EXPECT_LE(core.now - start,
                LongestNs(policy, static_cast<std::uint64_t>(static_cast<double>(run_ns) * slow)))
          << run_ns;
    }
  }
}

}  // namespace
}  // namespace loopfleet::worker
