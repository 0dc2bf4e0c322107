#include "worker/timing/device_meter.h"

#include <gtest/gtest.h>

#include <vector>

#include "worker/isa/isa_support.h"
#include "worker/timing/host_core_probe.h"

namespace loopfleet::worker {
namespace {

TEST(DeviceMeterTest, ReferenceClocksAreOnAGrid) {
  EXPECT_EQ(ReferenceMhz(3'689), 3'700);
  EXPECT_EQ(ReferenceMhz(3'651), 3'700);
  EXPECT_EQ(ReferenceMhz(0), 0);
}

TEST(DeviceMeterTest, PeakIsAtTheReferenceClock) {
  const DeviceReading reading{
      .flop_per_cycle = 64, .clock_mhz = 3'690, .read_bytes_per_second = 2e10};
  EXPECT_NEAR(PeaksOf(reading, 3'700).flop_per_second, 236.8e9, 1e6);
  EXPECT_NEAR(PeaksOf(reading, 0).flop_per_second, 236.16e9, 1e6);
  EXPECT_EQ(PeaksOf(reading, 3'700).read_bytes_per_second, 2e10);
  EXPECT_EQ(PeaksOf({}, 3'700).flop_per_second, 0);
}

TEST(DeviceMeterTest, WithoutAClockCyclesAreNanoseconds) {
  EXPECT_NEAR(PeaksOf({.flop_per_cycle = 100}, 0).flop_per_second, 100e9, 1);
}

TEST(DeviceMeterTest, WideVectorsTakeAsLongAsNarrowOnesOrTwiceAsLong) {
  EXPECT_EQ(WideVectorFactor({}), 1);
  EXPECT_EQ(WideVectorFactor({0.97, 0.98, 0.99}), 1) << "no processor has more units for them";
  EXPECT_EQ(WideVectorFactor({1.99, 2, 5}), 2) << "one was disturbed";
  for (const double beside_a_neighbour : {0.9, 1.15, 1.25}) {
    EXPECT_EQ(WideVectorFactor({beside_a_neighbour}), 1);
  }
  for (const double beside_a_neighbour : {1.7, 2.2, 9.0}) {
    EXPECT_EQ(WideVectorFactor({beside_a_neighbour}), 2);
  }
}

TEST(DeviceMeterTest, PeaksFollowFromTheUnits) {
  constexpr double kTwoUnits = 10'000;
  for (const double measured : {9'800.0, 10'000.0, 10'400.0, 13'000.0, 19'000.0}) {
    EXPECT_EQ(PeakCycles(measured, kTwoUnits), kTwoUnits) << measured;
  }
  for (const double measured : {19'700.0, 20'000.0, 31'000.0}) {
    EXPECT_EQ(PeakCycles(measured, kTwoUnits), 2 * kTwoUnits) << measured;
  }
  EXPECT_EQ(PeakCycles(5'000, kTwoUnits), 5'000) << "more units than this program knows of";
  EXPECT_EQ(PeakCycles(13'000, 0), 13'000);
}

TEST(DeviceMeterTest, StreamsNeverFitTheLastCache) {
  constexpr std::uint64_t kMebi = 1 << 20;
  const auto of = [](std::uint64_t cache, std::uint64_t memory) {
    return StreamBytes({.l3_bytes = cache * kMebi, .memory_bytes = memory * kMebi}) / kMebi;
  };
  EXPECT_EQ(of(1, 16'384), 64U);
  EXPECT_EQ(of(32, 16'384), 96U);
  EXPECT_EQ(of(96, 16'384), 256U);
  EXPECT_EQ(of(300, 16'384), 600U);
  EXPECT_EQ(of(300, 2'048), 0U) << "most of the host's memory is for jobs";
  EXPECT_EQ(of(300, 0), 600U) << "unknown";
}

TEST(DeviceMeterTest, WithoutMemoryForStreamsBandwidthIsUnknown) {
  const DeviceReading reading = MeasureDevice(core_kernels::kPortable, SystemStopwatch(), 0);
  EXPECT_EQ(reading.read_bytes_per_second, 0);
  EXPECT_EQ(reading.triad_bytes_per_second, 0);
  EXPECT_GT(reading.flop_per_cycle, 0);
}

TEST(DeviceMeterTest, MeasuresTheHost) {
  const SystemStopwatch stopwatch;
  const DeviceReading reading = MeasureDevice(*HostIsa().core_kernels, stopwatch, 64 << 20);
  EXPECT_GT(reading.probe_steps, 0U);
  EXPECT_GE(reading.probe_cycles.size(), 3U);
  EXPECT_GT(reading.flop_per_cycle, 0.1);
  EXPECT_GT(reading.read_bytes_per_second, 1e8);
  EXPECT_GT(reading.triad_bytes_per_second, 1e8);
  EXPECT_GT(reading.clock_mhz, 100);
  EXPECT_LT(reading.clock_mhz, 20'000);
}

TEST(CoreKernelsTest, ReadAddsUpAndTriadComputes) {
  for (const IsaSupport& row : IsaTable()) {
    if (!row.runs_here()) continue;
    const CoreKernels& kernels = *row.core_kernels;
    std::vector<float> a(512);
    std::vector<float> b(512, 3);
    std::vector<float> c(512, 2);
    EXPECT_EQ(kernels.read(b.data(), b.size()), 1'536) << row.name;
    kernels.triad(a.data(), b.data(), c.data(), a.size());
    for (const float value : a) EXPECT_EQ(value, 4) << row.name;
    kernels.multiply_adds(100);
    kernels.multiply_adds_from_cache(100);
    EXPECT_GT(kernels.flop_per_step, 0U);
    if (kernels.dependent_multiply_adds != nullptr) kernels.dependent_multiply_adds(100);
    EXPECT_GT(kernels.vector_bytes, 0U);
  }
}

TEST(HostCoreProbeTest, TakesTimeAndKeepsItsSteps) {
  const SystemStopwatch stopwatch;
  HostCoreProbe probe(core_kernels::kPortable, stopwatch, 1'234);
  EXPECT_EQ(probe.steps(), 1'234U);
  EXPECT_GT(probe.ThroughputNs(), 0U);
}

// CoreKernels that count their steps.
std::uint64_t wide_steps = 0;
std::uint64_t narrow_steps = 0;
constexpr CoreKernels kNarrow{
    .multiply_adds_from_cache = [](std::uint64_t n) { narrow_steps += n; },
    .least_cycles_per_step = 5};
constexpr CoreKernels kWide{.multiply_adds_from_cache = [](std::uint64_t n) { wide_steps += n; },
                            .least_cycles_per_step = 7,
                            .narrower = &kNarrow};

TEST(HostCoreProbeTest, ProbesWithTheNarrowerVectors) {
  const SystemStopwatch stopwatch;
  HostCoreProbe probe(kWide, stopwatch, 100);
  probe.ThroughputNs();
  EXPECT_GE(narrow_steps, 100U);
  EXPECT_EQ(probe.LeastCycles(), 500);
  HostCoreProbe(kWide, stopwatch).ThroughputNs();
  EXPECT_EQ(wide_steps, 0U);
  EXPECT_EQ(HostCoreProbe(kNarrow, stopwatch, 100).LeastCycles(), 500);
}

// The clocks of wide vectors and scalars differ by what the processor lowers, and by a rise or an
// interrupt meanwhile. A wrong latency would give 4/5 or 5/4 of the clock at best.
TEST(HostCoreProbeTest, ReadsTheClockByVectorsOfAnyWidth) {
  const SystemStopwatch stopwatch;
  HostCoreProbe probe(*HostIsa().core_kernels, stopwatch);
  const double scalar = probe.ClockMhz(0);
  if (scalar == 0) GTEST_SKIP() << "no clock is known of this processor";
  for (const std::uint32_t bytes : {16U, 32U, 64U}) {
    double quickest = 0;
    for (int i = 0; i < 20; ++i) {
      probe.HoldClock(bytes);
      quickest = std::max(quickest, probe.ClockMhz(bytes) / probe.ClockMhz(0));
    }
    EXPECT_GT(quickest, bytes <= 32 ? 0.85 : 0.7) << bytes;
    EXPECT_LT(quickest, 1.5) << bytes;
  }
}

TEST(HostCoreProbeTest, WaitsForAQuietCoreAsLongAsItIsTold) {
  const SystemStopwatch stopwatch;
  HostCoreProbe probe(core_kernels::kPortable, stopwatch, 1'234);
  EXPECT_TRUE(probe.WaitUntilQuiet(1e18, 0));  // any probe is quicker than that
  constexpr std::uint64_t kPatience = 200'000;
  const std::uint64_t start = stopwatch.NowNs();
  EXPECT_FALSE(probe.WaitUntilQuiet(0, kPatience));
  EXPECT_GE(stopwatch.NowNs() - start, kPatience);
}

}  // namespace
}  // namespace loopfleet::worker
