#include "worker/timing/measurement_rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "worker/timing/statistics.h"

namespace loopfleet::worker {
namespace {

constexpr double kMhz = 3000;

// A round whose samples are all accepted, at a steady clock.
Samples SamplesOf(const std::vector<double>& ns, double clock_mhz = kMhz) {
  Samples samples{.iterations = 12, .ns = ns};
  samples.flags.assign(ns.size(), kSampleAccepted);
  samples.clock_before_mhz = samples.clock_after_mhz = clock_mhz;
  return samples;
}
Samples QuietRound(double ns) { return SamplesOf({ns, ns * 1.001, ns * 0.999, ns, ns * 1.002}); }
Samples ContendedRound(double ns) {
  Samples samples = SamplesOf({ns, ns, ns});
  samples.flags.assign(3, kSampleContended);
  samples.slowdown = 1.2;
  return samples;
}

MeasurementRounds RoundsOf(const std::vector<Samples>& all, const JobSpec& spec = {}) {
  MeasurementRounds rounds(spec, {});
  for (const Samples& samples : all) rounds.Add(samples);
  return rounds;
}

TEST(MeasurementRoundsTest, TwoMomentsThatAgreeAreEnough) {
  const MeasurementRounds rounds = RoundsOf({QuietRound(100), QuietRound(100.5)});
  EXPECT_FALSE(rounds.NextIn());
  const Measurement m = rounds.Summarise(kMhz);
  EXPECT_EQ(m.grade, Grade::kA);
  EXPECT_NEAR(m.elapsed_ns, 100.25, 0.3);
  EXPECT_EQ(m.iterations_per_sample, 12U);
  EXPECT_EQ(m.samples_ns.size(), 10U);
  EXPECT_EQ(AcceptedSamples(m), 10U);
}

// Samples of two moments may agree by chance, or share what a third moment would not.
TEST(MeasurementRoundsTest, AnIntervalIsAtLeastAsWideAsMomentsLieApartOnThisHost) {
  const auto figure_of = [](std::size_t moments, const JobSpec& spec) {
    MeasurementRounds rounds(spec, {.moments_apart = 0.008});
    for (std::size_t i = 0; i < moments; ++i) rounds.Add(SamplesOf({100, 100, 100, 100, 100, 100}));
    return rounds.Summarise(kMhz);
  };
  const Measurement two = figure_of(2, {});
  EXPECT_NEAR(two.elapsed_low_ns, 99.2, 1e-9);
  EXPECT_NEAR(two.elapsed_high_ns, 100.8, 1e-9);
  EXPECT_EQ(two.grade, Grade::kA);
  EXPECT_NEAR(figure_of(4, {}).spread, 0.008 * std::sqrt(0.5), 1e-9) << "more moments say more";

  JobSpec precise;
  precise.precision = 0.006;
  MeasurementRounds rounds(precise, {.moments_apart = 0.008});
  for (int i = 0; i < 3; ++i) rounds.Add(SamplesOf({100, 100, 100, 100, 100, 100}));
  EXPECT_TRUE(rounds.NextIn()) << "0.0065 is not precise enough";
  rounds.Add(SamplesOf({100, 100, 100, 100, 100, 100}));
  EXPECT_FALSE(rounds.NextIn());
}

TEST(MeasurementRoundsTest, MomentsApartIsOfTheFirstTwoThatAgree) {
  EXPECT_FALSE(RoundsOf({QuietRound(100)}).MomentsApart());
  EXPECT_FALSE(RoundsOf({QuietRound(100), QuietRound(115)}).MomentsApart());
  const auto apart = RoundsOf({QuietRound(100.4), QuietRound(115), QuietRound(100)}).MomentsApart();
  EXPECT_NEAR(apart.value(), 0.004, 1e-9);
}

// Repetitions of one look share its clock readings, however many there are.
TEST(MeasurementRoundsTest, LongRunsOfOneLookAreOneMoment) {
  Samples look = SamplesOf(std::vector<double>(100, 7e6));
  look.iterations = 1;
  MeasurementRounds rounds({.precision = 0.002}, {.moments_apart = 0.008});
  rounds.Add(look);
  EXPECT_TRUE(rounds.NextIn());
  EXPECT_FALSE(rounds.MomentsApart());
  EXPECT_NEAR(rounds.Summarise(kMhz).spread, 0.008 * std::sqrt(2), 1e-9);
  for (double& ns : look.ns) ns *= 1.004;
  rounds.Add(look);
  EXPECT_NEAR(rounds.MomentsApart().value(), 0.004, 1e-9);
  EXPECT_GE(rounds.Summarise(kMhz).spread, 0.008);

  // Half of a budget is left, and another moment can make it an A.
  MeasurementRounds budgeted({.budget_ms = 1'500}, {.moments_apart = 0.008});
  budgeted.Add(look);
  EXPECT_EQ(budgeted.Summarise(kMhz).grade, Grade::kB);
  EXPECT_TRUE(budgeted.NextIn());
  budgeted.Add(look);
  EXPECT_EQ(budgeted.Summarise(kMhz).grade, Grade::kA);
  EXPECT_FALSE(budgeted.NextIn());

  // Without a time of its own, a job has as many moments as long repetitions.
  MeasurementRounds plain({}, {.moments_apart = 0.008});
  look.ns.resize(8);
  look.flags.resize(8);
  plain.Add(look);
  EXPECT_NEAR(plain.Summarise(kMhz).spread, 0.004, 1e-9);
  EXPECT_TRUE(plain.MomentsApart());
}

// A clock that was read as 1/8 of what it was makes a kernel look nearly twice as quick.
TEST(MeasurementRoundsTest, WithoutAgreementTheIntervalHoldsTheTimeAtEitherClockOfARound) {
  Samples misread = QuietRound(100);
  misread.clock_after_mhz = kMhz / 8;
  const Measurement m = RoundsOf({misread, misread, misread}).Summarise(kMhz);
  EXPECT_LE(m.elapsed_low_ns, 12.5);
  EXPECT_GE(m.elapsed_high_ns, 100);
  EXPECT_EQ(m.grade, Grade::kD);
}

TEST(MeasurementRoundsTest, OneMomentNeverIs) {
  const MeasurementRounds rounds = RoundsOf({QuietRound(100)});
  EXPECT_EQ(rounds.NextIn(), std::chrono::milliseconds(5));
  EXPECT_EQ(rounds.Summarise(kMhz).grade, Grade::kB);
}

// No probe and no interval shows it: a whole round is evenly slow.
TEST(MeasurementRoundsTest, ARoundThatIsEvenlySlowIsFoundAndLeftOut) {
  for (const std::size_t slow : {0U, 1U}) {
    std::vector<Samples> all = {QuietRound(100), QuietRound(100)};
    all[slow] = QuietRound(115);
    MeasurementRounds rounds = RoundsOf(all);
    EXPECT_EQ(rounds.Summarise(kMhz).grade, Grade::kC);  // 100 or 115
    EXPECT_EQ(rounds.NextIn(), std::chrono::milliseconds(10));
    rounds.Add(QuietRound(100.4));
    EXPECT_FALSE(rounds.NextIn());
    const Measurement m = rounds.Summarise(kMhz);
    EXPECT_EQ(m.grade, Grade::kA);
    EXPECT_NEAR(m.elapsed_ns, 100.2, 0.3);
    EXPECT_LT(m.elapsed_high_ns, 101);
    EXPECT_EQ(m.samples_ns.size(), 15U);  // nothing is thrown away
    EXPECT_EQ(AcceptedSamples(m), 10U);
    EXPECT_EQ(std::ranges::count(m.sample_flags, std::uint8_t{kSampleOutlierRound}), 5);
  }
}

// Its clock was measured too slow.
TEST(MeasurementRoundsTest, ARoundThatIsTooQuickIsLeftOut) {
  Samples misjudged = QuietRound(100);
  misjudged.clock_before_mhz = misjudged.clock_after_mhz = 0.9 * kMhz;
  for (const Samples& quick : {QuietRound(98), misjudged}) {
    const MeasurementRounds rounds = RoundsOf({quick, QuietRound(100), QuietRound(100.3)});
    EXPECT_FALSE(rounds.NextIn());
    EXPECT_NEAR(rounds.Summarise(kMhz).elapsed_ns, 100.15, 0.3);
  }
}

// Wall time is never too short, so a neighbour that no probe sees disturbed the later rounds.
TEST(MeasurementRoundsTest, ARoundThatIsFarTooQuickForTheOthersRefutesThem) {
  MeasurementRounds rounds = RoundsOf({QuietRound(83), QuietRound(100), QuietRound(100.3)});
  EXPECT_TRUE(rounds.NextIn());
  EXPECT_EQ(rounds.Summarise(kMhz).grade, Grade::kC);
  rounds.Add(QuietRound(100.1));
  EXPECT_TRUE(rounds.NextIn());
  EXPECT_EQ(rounds.Summarise(kMhz).grade, Grade::kC);
  rounds.Add(QuietRound(83.2));
  EXPECT_EQ(rounds.Summarise(kMhz).grade, Grade::kA);
  EXPECT_NEAR(rounds.Summarise(kMhz).elapsed_ns, 83.1, 0.3);
}

TEST(MeasurementRoundsTest, WhereNoneAgreeThereAreFiveAndNoGoodGrade) {
  std::vector<Samples> all;
  MeasurementRounds rounds({}, {});
  Nanos waited{0};
  for (const double ns : {100, 103, 106, 109, 112}) {
    if (!rounds.is_empty()) waited += rounds.NextIn().value();
    rounds.Add(QuietRound(ns));
  }
  EXPECT_FALSE(rounds.NextIn());
  EXPECT_EQ(waited, std::chrono::milliseconds(75));
  const Measurement m = rounds.Summarise(kMhz);
  EXPECT_NE(m.grade, Grade::kA);
  EXPECT_LE(m.elapsed_low_ns, 100);
  EXPECT_GE(m.elapsed_high_ns, 112);
}

TEST(MeasurementRoundsTest, AContendedMomentIsFollowedByOthers) {
  MeasurementRounds rounds = RoundsOf({ContendedRound(120), QuietRound(100)});
  EXPECT_TRUE(rounds.NextIn());
  rounds.Add(ContendedRound(121));
  EXPECT_TRUE(rounds.NextIn());
  rounds.Add(QuietRound(100.1));
  EXPECT_FALSE(rounds.NextIn());
  const Measurement m = rounds.Summarise(kMhz);
  EXPECT_EQ(m.grade, Grade::kA);
  EXPECT_NEAR(m.elapsed_ns, 100.1, 0.2);
  EXPECT_EQ(std::ranges::count(m.sample_flags, std::uint8_t{kSampleContended}), 6);
}

TEST(MeasurementRoundsTest, AContendedKernelThatIsAloneGetsTwoMoments) {
  const std::vector<Samples> contended(2, ContendedRound(120));
  const MeasurementRounds rounds = RoundsOf(contended);
  EXPECT_TRUE(rounds.NextIn());
  EXPECT_FALSE(rounds.NextIn(/*is_alone=*/true));
  EXPECT_EQ(RoundsOf({contended[0]}).NextIn(/*is_alone=*/true), Nanos{0})
      << "it has waited for a quiet core";
  EXPECT_EQ(RoundsOf({contended[0]}).NextIn(), std::chrono::milliseconds(5));
  EXPECT_EQ(RoundsOf({contended[0]}, {.cache = CacheState::kCold}).NextIn(/*is_alone=*/true),
            std::chrono::milliseconds(5));
  EXPECT_TRUE(RoundsOf({contended[0], QuietRound(100)}).NextIn(/*is_alone=*/true))
      << "a quiet moment can be confirmed";
  Samples preempted = contended[1];
  preempted.flags.assign(3, kSamplePreempted);
  EXPECT_TRUE(RoundsOf({contended[0], preempted}).NextIn(/*is_alone=*/true));
  for (const JobSpec& asks :
       {JobSpec{.min_grade = Grade::kB}, JobSpec{.precision = 0.01}, JobSpec{.budget_ms = 500}}) {
    EXPECT_TRUE(RoundsOf(contended, asks).NextIn(/*is_alone=*/true));
  }
}

// Contention can only slow a round, so a contended round confirms that another is not too quick.
TEST(MeasurementRoundsTest, AContendedMomentConfirmsAClearOne) {
  for (const double contended : {99.4, 100.6}) {
    const MeasurementRounds rounds = RoundsOf({QuietRound(100), ContendedRound(contended)});
    EXPECT_FALSE(rounds.NextIn());
    const Measurement m = rounds.Summarise(kMhz);
    EXPECT_EQ(m.grade, Grade::kA);
    EXPECT_NEAR(m.elapsed_ns, 100, 0.2);  // of the clear round
    EXPECT_EQ(AcceptedSamples(m), 5U);
  }
}

TEST(MeasurementRoundsTest, ContendedMomentsThatAreQuickerRefuteClearOnes) {
  MeasurementRounds rounds =
      RoundsOf({QuietRound(110), ContendedRound(100), ContendedRound(100.2)});
  EXPECT_TRUE(rounds.NextIn());
  rounds.Add(QuietRound(110.1));  // slow, but no probe shows it
  EXPECT_TRUE(rounds.NextIn());
  EXPECT_NE(rounds.Summarise(kMhz).grade, Grade::kA);
  rounds.Add(QuietRound(99.9));
  EXPECT_NEAR(rounds.Summarise(kMhz).elapsed_ns, 99.9, 0.2);
}

TEST(MeasurementRoundsTest, ContentionThroughoutIsGradeCAndSaysHowMuch) {
  const MeasurementRounds rounds = RoundsOf(std::vector<Samples>(5, ContendedRound(120)));
  EXPECT_FALSE(rounds.NextIn());
  const Measurement m = rounds.Summarise(kMhz);
  EXPECT_EQ(m.grade, Grade::kC);
  EXPECT_NEAR(m.elapsed_low_ns, 100, 1e-9);  // as much too slow as the probes, perhaps
}

TEST(MeasurementRoundsTest, TheIntervalOfAContendedFigureReachesAsFarAsNeighboursSlowThisHost) {
  const auto figure_of = [](double host_slowdown, const Samples& samples) {
    MeasurementRounds rounds({}, {.host_slowdown = host_slowdown});
    for (int i = 0; i < 5; ++i) rounds.Add(samples);
    return rounds.Summarise(kMhz);
  };
  EXPECT_NEAR(figure_of(1, ContendedRound(120)).elapsed_high_ns, 120, 1e-9);
  EXPECT_NEAR(figure_of(1.5, ContendedRound(120)).elapsed_high_ns, 180, 1e-9);
  const Measurement worst = figure_of(9, ContendedRound(120));
  EXPECT_EQ(worst.grade, Grade::kC) << "that alone makes no figure useless";
  EXPECT_NEAR(worst.spread, kMaxSpread, 0.001);
  EXPECT_LT(figure_of(1.5, QuietRound(100)).elapsed_high_ns, 101);
  Samples lightly = ContendedRound(120);
  lightly.slowdown = 1.06;
  EXPECT_NEAR(figure_of(1.5, lightly).elapsed_high_ns, 180, 1e-9) << "others slow it more";
  // Two quiet rounds agree, whatever a third one met.
  MeasurementRounds agreed({}, {.host_slowdown = 2});
  for (const Samples& samples : {QuietRound(100), ContendedRound(120), QuietRound(100)}) {
    agreed.Add(samples);
  }
  EXPECT_EQ(agreed.Summarise(kMhz).grade, Grade::kA);
  EXPECT_LT(agreed.Summarise(kMhz).elapsed_high_ns, 101);
}

TEST(MeasurementRoundsTest, PreemptedThroughoutIsOfGradeD) {
  Samples samples = SamplesOf({120, 121, 122});
  samples.flags.assign(3, kSamplePreempted);
  MeasurementRounds rounds = RoundsOf(std::vector<Samples>(5, samples));
  EXPECT_FALSE(rounds.NextIn());
  const Measurement m = rounds.Summarise(kMhz);
  EXPECT_EQ(m.grade, Grade::kD);
  EXPECT_EQ(m.samples_ns.size(), 15U);
  EXPECT_EQ(m.elapsed_ns, 121);

  // One sample was not preempted: the figure is of that one alone.
  samples.flags[1] = kSampleContended;
  rounds.Add(samples);
  EXPECT_DOUBLE_EQ(rounds.Summarise(kMhz).elapsed_ns, 121);
}

TEST(MeasurementRoundsTest, AClockThatMovedConfirmsNothing) {
  Samples moved = QuietRound(100);
  moved.clock_after_mhz = 0.98 * kMhz;
  MeasurementRounds rounds = RoundsOf({moved, QuietRound(99.5)});
  EXPECT_NE(rounds.Summarise(kMhz).grade, Grade::kA);
  EXPECT_TRUE(rounds.NextIn());
  rounds.Add(QuietRound(99.6));
  EXPECT_FALSE(rounds.NextIn());
  EXPECT_EQ(rounds.Summarise(kMhz).grade, Grade::kA);
}

TEST(MeasurementRoundsTest, MomentsAgreeInCyclesNotOnTheWall) {
  const MeasurementRounds rounds = RoundsOf({SamplesOf(std::vector<double>(5, 100.0), 3000),
                                             SamplesOf(std::vector<double>(5, 120.0), 2500)});
  EXPECT_FALSE(rounds.NextIn());
  const Measurement m = rounds.Summarise(kMhz);
  EXPECT_EQ(m.grade, Grade::kA);
  EXPECT_NEAR(m.elapsed_ns, 100, 1e-9);
  EXPECT_NEAR(m.samples_ns.back(), 100, 1e-9);
}

// Intervals shrink with the square root of the number of samples.
TEST(MeasurementRoundsTest, AThirdLookIsForWhatItCanMakeAnA) {
  const std::vector<double> nearly = {100, 101.1, 98.9, 100.6, 99.4};  // spread of ten: 1.1 %
  MeasurementRounds rounds = RoundsOf({SamplesOf(nearly), SamplesOf(nearly)});
  EXPECT_EQ(rounds.Summarise(kMhz).grade, Grade::kB);
  EXPECT_TRUE(rounds.NextIn());
  rounds.Add(SamplesOf(nearly));
  EXPECT_FALSE(rounds.NextIn());
  EXPECT_EQ(rounds.Summarise(kMhz).grade, Grade::kA);

  const std::vector<double> scattered = {100, 106, 97, 103, 94};
  MeasurementRounds hopeless = RoundsOf({SamplesOf(scattered), SamplesOf(scattered)});
  EXPECT_FALSE(hopeless.NextIn());
  EXPECT_NE(hopeless.Summarise(kMhz).grade, Grade::kA);
  MeasurementRounds asked =
      RoundsOf({SamplesOf(scattered), SamplesOf(scattered)}, {.precision = 0.01});
  EXPECT_TRUE(asked.NextIn());  // a requested precision is tried for
}

TEST(MeasurementRoundsTest, AJobThatAsksForAGradeGetsAsManyLooksAsThereAre) {
  const JobSpec asks{.min_grade = Grade::kA};
  // A third round is not likely to make this one an A.
  const std::vector<double> scattered = {100, 101.3, 98.7, 100.7, 99.3};
  MeasurementRounds rounds = RoundsOf({SamplesOf(scattered), SamplesOf(scattered)}, asks);
  EXPECT_FALSE(RoundsOf({SamplesOf(scattered), SamplesOf(scattered)}).NextIn());
  EXPECT_EQ(rounds.Summarise(kMhz).grade, Grade::kB);
  EXPECT_TRUE(rounds.NextIn());
  rounds.Add(SamplesOf(scattered));
  EXPECT_FALSE(rounds.NextIn());
  EXPECT_EQ(rounds.Summarise(kMhz).grade, Grade::kA);

  const Samples more = SamplesOf({100, 106, 97, 103, 94});
  EXPECT_TRUE(RoundsOf({more, more, more}, asks).NextIn());
  EXPECT_TRUE(RoundsOf({more, more, more, more}, asks).NextIn());
  EXPECT_FALSE(RoundsOf({more, more, more, more, more}, asks).NextIn());
  // The same figure is good enough for another job.
  const Grade has = RoundsOf({more, more, more}).Summarise(kMhz).grade;
  EXPECT_FALSE(RoundsOf({more, more, more}, {.min_grade = has}).NextIn());
}

TEST(MeasurementRoundsTest, AFigureThatSaysLittleIsOfGradeDAfterFive) {
  Samples samples = SamplesOf({100, 900, 100, 900, 500});
  MeasurementRounds rounds({}, {});
  int taken = 0;
  do {
    rounds.Add(samples);
    for (double& ns : samples.ns) ns *= 1.3;  // none agrees with another
    ++taken;
  } while (rounds.NextIn());
  EXPECT_EQ(taken, 5);
  const Measurement m = rounds.Summarise(kMhz);
  EXPECT_EQ(m.grade, Grade::kD);
  EXPECT_GT(m.spread, kMaxSpread);
}

// Runs of 5 ms or more are as far apart as two rounds.
TEST(MeasurementRoundsTest, ThreeLongRunsThatAgreeAreEnough) {
  const auto of = [](std::vector<double> ms) {
    Samples samples = SamplesOf(ms);
    for (double& ns : samples.ns) ns *= 1e6;
    samples.iterations = 1;
    return samples;
  };
  MeasurementRounds rounds({}, {.expects_long_runs = true});
  EXPECT_EQ(rounds.NextPolicy().min_samples, kLeastAccepted);
  rounds.Add(of({7.01, 7.02, 7.00}));
  EXPECT_FALSE(rounds.NextIn());
  EXPECT_EQ(rounds.Summarise(kMhz).grade, Grade::kA);

  // One is apart: two are too few, so another round is taken if the job asks for a grade.
  MeasurementRounds few({}, {.expects_long_runs = true});
  few.Add(of({7.01, 7.30, 7.00}));
  EXPECT_FALSE(few.NextIn());
  // Three that are contended say nothing: they are taken again at another moment.
  Samples contended = of({7.01, 7.30, 7.00});
  contended.flags.assign(3, kSampleContended);
  MeasurementRounds again({}, {.expects_long_runs = true});
  again.Add(contended);
  EXPECT_TRUE(again.NextIn());
  EXPECT_TRUE(again.NextIn(/*is_alone=*/true)) << "they are of one moment, and too few";
  // But not if they took long, unless the job asks for a grade.
  for (double& ns : contended.ns) ns *= 6;
  MeasurementRounds slow({}, {.expects_long_runs = true});
  slow.Add(contended);
  EXPECT_FALSE(slow.NextIn());
  MeasurementRounds slow_but_asked({.min_grade = Grade::kB}, {.expects_long_runs = true});
  slow_but_asked.Add(contended);
  EXPECT_TRUE(slow_but_asked.NextIn());
  MeasurementRounds apart({.min_grade = Grade::kB}, {.expects_long_runs = true});
  apart.Add(of({7.01, 7.30, 7.00}));
  EXPECT_TRUE(apart.NextIn());
  apart.Add(of({7.02, 7.01, 7.00}));
  EXPECT_FALSE(apart.NextIn());
  const Measurement m = apart.Summarise(kMhz);
  EXPECT_EQ(m.grade, Grade::kA);
  EXPECT_EQ(std::ranges::count(m.sample_flags, kSampleOutlierRound), 1);
}

// Each of them is a round, but half of the time is left.
TEST(MeasurementRoundsTest, ManyLongRunsInOneLookDoNotUseUpTheTimeOfAJob) {
  std::vector<double> ns;
  for (int i = 0; i < 10; ++i) ns.push_back(7e6 + 2e5 * i);  // no two agree
  Samples look = SamplesOf(ns);
  look.iterations = 1;
  for (const JobSpec& asks : {JobSpec{.precision = 1e-4}, JobSpec{.budget_ms = 500}}) {
    MeasurementRounds rounds(asks, {.expects_long_runs = true});
    rounds.Add(look);
    EXPECT_EQ(rounds.NextIn(), std::chrono::milliseconds(5));
    int looks = 1;
    for (; rounds.NextIn(); ++looks) rounds.Add(look);
    EXPECT_EQ(looks, 5);
  }
  MeasurementRounds plain({}, {.expects_long_runs = true});
  plain.Add(look);
  EXPECT_FALSE(plain.NextIn());
}

// A neighbour that no probe saw may have slowed the accepted ones, too.
TEST(MeasurementRoundsTest, LongRunsThatAreMostlyDisturbedAreNoGoodFigure) {
  const auto figure_of = [](double run_ns, std::size_t contended) {
    Samples samples = SamplesOf(std::vector<double>(8, run_ns));
    samples.iterations = 1;
    std::fill_n(samples.flags.begin(), contended, kSampleContended);
    return RoundsOf({samples, samples});
  };
  const Measurement m = figure_of(4e6, 5).Summarise(kMhz);
  EXPECT_EQ(m.grade, Grade::kC);
  EXPECT_NEAR(m.elapsed_low_ns, 3e6, 1);
  EXPECT_NEAR(m.elapsed_high_ns, 4e6 * 4 / 3, 1);
  EXPECT_EQ(m.elapsed_ns, 4e6);
  EXPECT_EQ(figure_of(4e6, 4).Summarise(kMhz).grade, Grade::kA) << "half of them were accepted";
  EXPECT_EQ(figure_of(4e5, 5).Summarise(kMhz).grade, Grade::kA) << "the probes would have seen it";
  EXPECT_FALSE(figure_of(4e5, 5).NextIn());

  // Too few are accepted: as before, but the interval says what the probes cannot.
  const Measurement few = figure_of(4e6, 7).Summarise(kMhz);
  EXPECT_EQ(few.grade, Grade::kC);
  EXPECT_LE(few.elapsed_low_ns, 3e6);
  EXPECT_GE(few.elapsed_high_ns, 4e6 * 4 / 3 - 1);
}

// Of a core that is nearly always contended, a few repetitions pass between probes that are quiet.
TEST(MeasurementRoundsTest, FewAcceptedAmongMostlyContendedRepetitionsAreNoGoodFigure) {
  const auto round_of = [](double run_ns, std::size_t contended) {
    Samples samples = SamplesOf(std::vector<double>(8, run_ns));
    std::fill_n(samples.flags.begin(), contended, kSampleContended);
    return samples;
  };
  const Samples doubtful = round_of(13'000, 6);
  const Measurement m = RoundsOf({doubtful, doubtful}).Summarise(kMhz);
  EXPECT_EQ(m.grade, Grade::kC);
  EXPECT_NEAR(m.elapsed_low_ns, 9'750, 1);
  const Samples usable = round_of(13'000, 5);
  EXPECT_EQ(RoundsOf({usable, usable}).Summarise(kMhz).grade, Grade::kA);
  // Rounds that do not count leave those that do as good as they are.
  const Samples loud = round_of(13'000, 8);
  const Samples quiet = round_of(10'000, 0);
  EXPECT_EQ(RoundsOf({loud, loud, loud, quiet, quiet}).Summarise(kMhz).grade, Grade::kA);
}

TEST(MeasurementRoundsTest, ADisturbedLongRunGetsOtherMomentsIfTheJobAsksForAGrade) {
  Samples disturbed = SamplesOf(std::vector<double>(6, 4e6));
  disturbed.iterations = 1;
  std::fill_n(disturbed.flags.begin(), 4, kSampleContended);
  const JobSpec asks{.min_grade = Grade::kB};
  EXPECT_FALSE(RoundsOf({disturbed, disturbed}).NextIn());
  EXPECT_TRUE(RoundsOf({disturbed, disturbed}, asks).NextIn());
}

TEST(MeasurementRoundsTest, PrecisionIsOfBothMomentsTogether) {
  const JobSpec spec{.precision = 0.0001};
  MeasurementRounds rounds = RoundsOf({QuietRound(100), QuietRound(100)}, spec);
  EXPECT_TRUE(rounds.NextIn());  // good enough for an A, but not for this job
  EXPECT_DOUBLE_EQ(rounds.NextPolicy().precision, 0.0001);
  EXPECT_EQ(rounds.NextPolicy().iterations, 12U);
}

TEST(MeasurementRoundsTest, TheBudgetIsOfAllRounds) {
  const JobSpec spec{.budget_ms = 2};
  MeasurementRounds rounds(spec, {});
  EXPECT_EQ(rounds.NextPolicy().budget_ns, 1'000'000U);
  rounds.Add(SamplesOf(std::vector<double>(5, 20'000.0)));  // 12 runs each: 1.2 ms
  EXPECT_EQ(rounds.NextPolicy().budget_ns, 800'000U);
  EXPECT_TRUE(rounds.NextIn());  // one round is never enough
  rounds.Add(SamplesOf(std::vector<double>(4, 30'000.0)));
  EXPECT_FALSE(rounds.NextIn());  // they do not agree, but the budget is spent
}

// Evictions take nearly all of the time of a cold round.
TEST(MeasurementRoundsTest, TheBudgetOfColdRoundsIncludesTheirEvictions) {
  Samples look = SamplesOf(std::vector<double>(20, 20'000.0));
  look.iterations = 1;
  look.spent_ns = 510'000'000;
  for (const JobSpec& asks :
       {JobSpec{.cache = CacheState::kCold, .precision = 1e-3, .budget_ms = 1'000},
        JobSpec{.cache = CacheState::kCold, .precision = 1e-3},
        JobSpec{.cache = CacheState::kCold, .budget_ms = 1'000}}) {
    MeasurementRounds rounds(asks, {});
    EXPECT_EQ(rounds.NextPolicy().budget_ns, 500'000'000U);
    rounds.Add(look);
    EXPECT_EQ(rounds.NextPolicy().budget_ns, 490'000'000U);
    EXPECT_TRUE(rounds.NextIn());
    for (double& ns : look.ns) ns *= 1.3;  // no agreement
    rounds.Add(look);
    EXPECT_FALSE(rounds.NextIn());
  }
  MeasurementRounds plain({.cache = CacheState::kCold}, {});
  plain.Add(look);
  EXPECT_EQ(plain.NextPolicy().budget_ns, 100'000'000U) << "each round has as much";
  EXPECT_EQ(plain.NextPolicy().patience_ns, 100'000'000U);
  EXPECT_TRUE(plain.NextIn());
}

TEST(MeasurementRoundsTest, KernelsThatTakeSecondsAreLookedAtTwice) {
  MeasurementRounds rounds = RoundsOf({SamplesOf({1e8, 1e8}), SamplesOf({1.1e8, 1.1e8})});
  EXPECT_FALSE(rounds.NextIn());
}

TEST(MeasurementRoundsTest, ACutIsConfirmedUnlessItIsBeyondDoubt) {
  const auto cut = [](double ns) {
    Samples samples = SamplesOf({ns, ns});
    samples.end = SamplingEnd::kCut;
    return samples;
  };
  const JobSpec spec{.cut_above_ns = 100};
  EXPECT_TRUE(RoundsOf({cut(250)}, spec).IsCut());
  EXPECT_FALSE(RoundsOf({cut(250)}, spec).NextIn());
  MeasurementRounds near = RoundsOf({cut(120)}, spec);
  EXPECT_FALSE(near.IsCut());  // it may be evenly slow
  EXPECT_TRUE(near.NextIn());
  near.Add(cut(121));
  EXPECT_TRUE(near.IsCut());

  // A contended round says nothing, for a cut or against it.
  EXPECT_TRUE(RoundsOf({ContendedRound(150), cut(120), cut(121)}, spec).IsCut());
  EXPECT_TRUE(RoundsOf({ContendedRound(150), cut(250)}, spec).IsCut());
  EXPECT_FALSE(RoundsOf({ContendedRound(150), cut(120)}, spec).IsCut());
  EXPECT_FALSE(RoundsOf({QuietRound(98), cut(120), cut(121)}, spec).IsCut());

  MeasurementRounds refuted = RoundsOf({cut(120), QuietRound(98)}, spec);
  EXPECT_FALSE(refuted.IsCut());
  EXPECT_TRUE(refuted.NextIn());
  refuted.Add(QuietRound(98.2));
  EXPECT_FALSE(refuted.NextIn());
  EXPECT_NEAR(refuted.Summarise(kMhz).elapsed_ns, 98.1, 0.3);
}

// A slow clock: twice the bound in wall time, less at the reference clock.
TEST(MeasurementRoundsTest, BeyondDoubtIsAtTheReferenceClock) {
  Samples samples = SamplesOf({220, 220}, 2400);
  samples.end = SamplingEnd::kCut;
  const auto is_cut = [&](double reference_mhz) {
    MeasurementRounds rounds({.cut_above_ns = 100}, {});
    rounds.Add(samples, reference_mhz);
    return rounds.IsCut();
  };
  EXPECT_TRUE(is_cut(0));
  EXPECT_TRUE(is_cut(2400));
  EXPECT_FALSE(is_cut(3000));  // 176 ns
}

TEST(MeasurementRoundsTest, AContendedMomentCutsWhatIsTenTimesAboveTheBound) {
  Samples samples = SamplesOf({1'010, 1'020});
  samples.end = SamplingEnd::kCut;
  for (std::uint8_t& flag : samples.flags) flag = kSampleContended;
  EXPECT_TRUE(RoundsOf({samples}, {.cut_above_ns = 100}).IsCut());
  EXPECT_FALSE(RoundsOf({samples}, {.cut_above_ns = 102}).IsCut());
  samples.flags[0] = kSamplePreempted;  // one sample is left
  EXPECT_FALSE(RoundsOf({samples}, {.cut_above_ns = 100}).IsCut());
}

// A sampler never reports this; a forged reply might.
TEST(MeasurementRoundsTest, NothingIsCutByWhatWasNotAccepted) {
  Samples samples = SamplesOf({500});
  samples.end = SamplingEnd::kCut;
  for (const std::uint8_t flag : {kSampleContended, kSampleAccepted}) {
    samples.flags[0] = flag;
    EXPECT_FALSE(RoundsOf({samples}, {.cut_above_ns = 100}).IsCut());
    EXPECT_FALSE(RoundsOf({samples, samples}, {.cut_above_ns = 100}).IsCut());
    EXPECT_TRUE(RoundsOf({samples}, {.cut_above_ns = 100}).NextIn());
  }
}

TEST(MeasurementRoundsTest, ALookGoesOnUntilItIsPreciseButNotForLong) {
  const SamplingPolicy policy = MeasurementRounds({}, {}).NextPolicy();
  EXPECT_DOUBLE_EQ(policy.precision, kGradeASpread);
  EXPECT_EQ(policy.most_samples, 20U);
  EXPECT_EQ(policy.budget_ns, 2'000'000U);
}

TEST(MeasurementRoundsTest, AQuietMomentIsWaitedForWithinTheBudget) {
  EXPECT_EQ(MeasurementRounds({}, {}).NextPolicy().quiet_wait_ns, 250'000U);
  EXPECT_EQ(MeasurementRounds({.budget_ms = 1}, {}).NextPolicy().quiet_wait_ns, 62'500U);
  EXPECT_EQ(MeasurementRounds({.precision = 0.001}, {}).NextPolicy().quiet_wait_ns, 5'000'000U);
}

TEST(MeasurementRoundsTest, AKernelThatIsAloneWaitsLongerForAQuietCore) {
  constexpr bool kIsAlone = true;
  EXPECT_EQ(MeasurementRounds({}, {}).NextPolicy(kIsAlone).quiet_wait_ns, 5'000'000U);
  EXPECT_EQ(RoundsOf({ContendedRound(120)}).NextPolicy(kIsAlone).quiet_wait_ns, 250'000U)
      << "only the first round waits";
  EXPECT_EQ(MeasurementRounds({.budget_ms = 1}, {}).NextPolicy(kIsAlone).quiet_wait_ns, 62'500U);
}

TEST(MeasurementRoundsTest, WhatIsKnownOfTheKernelIsForEveryRound) {
  MeasurementRounds rounds({}, {.estimated_run_ns = 777, .vector_bytes = 64});
  EXPECT_DOUBLE_EQ(rounds.NextPolicy().estimated_run_ns, 777);
  EXPECT_EQ(rounds.NextPolicy().iterations, 0U);
  rounds.Add(QuietRound(100));
  EXPECT_DOUBLE_EQ(rounds.NextPolicy().estimated_run_ns, 777);
  EXPECT_EQ(rounds.NextPolicy().vector_bytes, 64U);
  EXPECT_EQ(rounds.NextPolicy().iterations, 12U);
}

TEST(MeasurementRoundsTest, ColdLooksHaveFourRunsEach) {
  const SamplingPolicy policy =
      MeasurementRounds({.threads = 2, .cache = CacheState::kCold}, {}).NextPolicy();
  EXPECT_EQ(policy.threads, 2U);  // the caches of their cores are evicted
  EXPECT_EQ(policy.cache, CacheState::kCold);
  EXPECT_EQ(policy.min_samples, 4U);
  EXPECT_EQ(policy.least_timed_ns, 0U);
}

TEST(MeasurementRoundsTest, SamplesOfAllRoundsAreBounded) {
  MeasurementRounds rounds({.precision = 0.000001}, {});
  std::size_t total = 0;
  while (rounds.is_empty() || rounds.NextIn()) {
    const SamplingPolicy policy = rounds.NextPolicy();
    std::vector<double> ns(policy.max_samples);
    std::iota(ns.begin(), ns.end(), 1000.0);
    total += ns.size();
    rounds.Add(SamplesOf(ns));
  }
  EXPECT_LE(total, 1'000U);
  EXPECT_EQ(total, rounds.sample_count());
}

TEST(MeasurementRoundsTest, FiguresOfKnownSamples) {
  std::vector<double> values(15);
  std::iota(values.begin(), values.end(), 100.0);  // 100 .. 114
  std::swap(values[0], values[14]);                // the order of the samples is kept
  const Measurement m = RoundsOf({SamplesOf(values, 0)}).Summarise(0);
  EXPECT_DOUBLE_EQ(m.elapsed_ns, 107);
  EXPECT_DOUBLE_EQ(m.elapsed_low_ns, 103);
  EXPECT_DOUBLE_EQ(m.elapsed_high_ns, 111);
  EXPECT_DOUBLE_EQ(m.elapsed_min_ns, 100);
  EXPECT_DOUBLE_EQ(m.elapsed_mean_ns, 107);
  EXPECT_DOUBLE_EQ(m.spread, 8.0 / (2 * 107));
  EXPECT_EQ(m.grade, Grade::kB);
  EXPECT_EQ(m.samples_ns, values);
  EXPECT_EQ(m.sample_flags, std::vector<std::uint8_t>(15, kSampleAccepted));
}

TEST(MeasurementRoundsTest, TooFewAcceptedIsGradeCWhateverTheyAgreeOn) {
  Samples samples = SamplesOf(std::vector<double>(20, 115.0));
  samples.slowdown = 1.15;
  samples.flags.assign(20, kSampleContended);
  samples.flags[3] = samples.flags[4] = kSampleAccepted;
  const Measurement m = RoundsOf({samples}).Summarise(kMhz);
  EXPECT_EQ(m.grade, Grade::kC);
  EXPECT_NEAR(m.elapsed_low_ns, 100, 1e-9);
}

TEST(MeasurementRoundsTest, TimesAreStatedAtTheReferenceClock) {
  Samples samples = SamplesOf(std::vector<double>(10, 100.0));
  samples.clock_before_mhz = 2985;
  samples.clock_after_mhz = 3015;
  EXPECT_DOUBLE_EQ(RoundsOf({samples}).Summarise(2500).elapsed_ns, 120);
  EXPECT_DOUBLE_EQ(RoundsOf({samples}).Summarise(2500).samples_ns[0], 120);
  EXPECT_DOUBLE_EQ(RoundsOf({samples}).Summarise(0).elapsed_ns, 100);
  samples.clock_after_mhz = 0;
  EXPECT_DOUBLE_EQ(RoundsOf({samples}).Summarise(2500).elapsed_ns, 100);
}

}  // namespace
}  // namespace loopfleet::worker
