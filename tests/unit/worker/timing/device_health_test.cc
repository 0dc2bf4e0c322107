#include "worker/timing/device_health.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

constexpr double kCycles = 5'000;  // of the arithmetic canary on this core

class DeviceHealthTest : public testing::Test {
 protected:
  // Whether a figure of `share` of the peak measured at the start is believed.
  bool IsPlausible(double share) {
    MeasurementRounds rounds({}, {});
    const double ns = 1'000'000;
    for (int i = 0; i < 2; ++i) {
      rounds.Add({.iterations = 1, .ns = {ns, ns, ns}, .flags = {0, 0, 0}});
    }
    const double flop_per_ns = kReading.flop_per_cycle;  // the clock is unknown
    return watch_
        .Judge(rounds, {}, {.flop_count = static_cast<std::uint64_t>(share * flop_per_ns * ns)},
               watch_.hardware())
        .has_value();
  }
  void Canaries(int count, double cycles) {
    for (int i = 0; i < count; ++i) {
      watch_.ObserveCanary(CanaryReading{.took = {cycles, 1, 1}}, Instant{});
    }
  }

  static inline const DeviceReading kReading{
      .probe_steps = 1'000,
      .flop_per_cycle = 64,
      .canary_flop = static_cast<std::uint64_t>(64 * kCycles)};
  DeviceHealth watch_{{}, kReading, HardwareFacts{}};
};

// On real cores one in a hundred is too quick, because its clock was misjudged.
TEST_F(DeviceHealthTest, OneQuickCanaryDoesNotMoveThePeak) {
  EXPECT_TRUE(IsPlausible(1.0));
  EXPECT_FALSE(IsPlausible(1.2));
  for (int block = 0; block < 10; ++block) {
    Canaries(1, 0.8 * kCycles);
    EXPECT_FALSE(IsPlausible(1.2));
    Canaries(31, kCycles);
    EXPECT_FALSE(IsPlausible(1.2));
  }
}

TEST_F(DeviceHealthTest, ACoreThatShowsMoreThanAtTheStartIsBelieved) {
  Canaries(32, 0.8 * kCycles);
  EXPECT_TRUE(IsPlausible(1.2));
  Canaries(64, kCycles);  // the peak never falls
  EXPECT_TRUE(IsPlausible(1.2));
  EXPECT_FALSE(IsPlausible(1.5));
  // The raised peak is reported with the figure.
  const double at_start = watch_.hardware().peaks.flop_per_second;
  EXPECT_NEAR(watch_.WithObservedPeaks(watch_.hardware()).peaks.flop_per_second, 1.25 * at_start,
              0.01 * at_start);
}

TEST_F(DeviceHealthTest, ANeighbourAtTheStartIsNotTakenForQuiet) {
  DeviceReading reading = kReading;
  reading.probe_cycles.assign(32, 8'300);
  EXPECT_EQ(DeviceHealth({}, reading, {}).PolicyFor(MeasurementRounds({}, {})).quiet_cycles, 8'300);
  EXPECT_TRUE(DeviceHealth({}, reading, {}).HasSeenQuiet());
  reading.least_probe_cycles = 5'000;
  DeviceHealth watch({}, reading, {});
  EXPECT_LT(watch.PolicyFor(MeasurementRounds({}, {})).quiet_cycles, 5'300);
  EXPECT_FALSE(watch.HasSeenQuiet());
  for (int i = 0; i < 32; ++i) watch.Observe(Samples{.probe_cycles = 5'150});
  EXPECT_EQ(watch.PolicyFor(MeasurementRounds({}, {})).quiet_cycles, 5'150);
  EXPECT_TRUE(watch.HasSeenQuiet());
}

// A cold round reads its clock on an idle core, which speeds up while the caches are evicted.
TEST_F(DeviceHealthTest, RoundsWhoseClockMovedDoNotMakeTheCoreLookContended) {
  DeviceReading reading = kReading;
  reading.least_probe_cycles = 5'000;
  DeviceHealth watch({}, reading, {});
  for (int i = 0; i < 32; ++i) watch.Observe(Samples{.probe_cycles = 5'150});
  for (int i = 0; i < 32; ++i) {
    watch.Observe(
        Samples{.probe_cycles = 4'000, .clock_before_mhz = 2'800, .clock_after_mhz = 3'500});
  }
  EXPECT_EQ(watch.PolicyFor(MeasurementRounds({}, {})).quiet_cycles, 5'150);
}

TEST_F(DeviceHealthTest, LearnsHowMuchNeighboursSlowTheHost) {
  EXPECT_EQ(watch_.slowdown(), 2) << "two threads share a core";
  for (int i = 0; i < 30; ++i) {
    for (const double slowdown : {1.0, 1.3, 7.0}) watch_.Observe(Samples{.slowdown = slowdown});
  }
  EXPECT_EQ(watch_.slowdown(), 1.3) << "no contention and interruptions do not count";
}

TEST_F(DeviceHealthTest, CanariesAreDueAnIntervalAfterTheLast) {
  using std::chrono::milliseconds;
  const Instant now = Instant{} + std::chrono::hours(1);
  EXPECT_TRUE(watch_.CanaryIsDue(now));
  watch_.ObserveCanary(std::nullopt, now);
  EXPECT_FALSE(watch_.CanaryIsDue(now + milliseconds(1'999)));
  EXPECT_TRUE(watch_.CanaryIsDue(now + milliseconds(2'000)));
}

TEST_F(DeviceHealthTest, SlowCanariesTakeNothingAway) {
  Canaries(64, 2 * kCycles);
  EXPECT_TRUE(IsPlausible(1.0));
}

TEST(HopelessAfterTest, IsWhatANeighbourCannotExplain) {
  const JobSpec spec{.cut_above_ns = 10'000'000};
  EXPECT_EQ(HopelessAfter(spec), std::chrono::milliseconds(30));
  EXPECT_EQ(HopelessAfter({.cut_above_ns = 1}), std::chrono::milliseconds(5))
      << "first uses of memory";
  EXPECT_EQ(HopelessAfter({}), std::nullopt) << "no bound";
  EXPECT_EQ(HopelessAfter({.threads = 2, .cut_above_ns = 10'000'000}),
            std::chrono::milliseconds(60));
  EXPECT_GT(HopelessAfter({.cut_above_ns = UINT64_MAX}), std::chrono::hours(24));
  const Failure cut = CutUntimed(spec);
  EXPECT_EQ(cut.code, FailureCode::kCut);
  EXPECT_EQ(cut.message,
            "one run surely takes longer than the bound of 10000000 ns; the run to be verified was "
            "stopped after 3e+07 ns of processor time, and no time is given");
}

}  // namespace
}  // namespace loopfleet::worker
