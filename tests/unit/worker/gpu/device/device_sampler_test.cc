// DeviceSampler on a fake driver and fake sensors.

#include "worker/gpu/device/device_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/unit/worker/gpu/device/fake_driver.h"

namespace loopfleet::worker {
namespace {

class FakeSensors final : public DeviceSensors {
 public:
  std::string DriverVersion() const override { return "1"; }
  double MaxClockMhz() const override { return 2000; }
  SensorReading Read() override {
    ++reads;
    if (driver != nullptr && driver->is_busy) ++reads_of_a_busy_device;
    SensorReading reading{.clock_mhz = 1500,
                          .memory_clock_mhz = 1000.0 + reads,
                          .temperature_c = reads == 3 ? 70.0 : 60.0,
                          .power_w = reads == 2 ? 300.0 : 250.0};
    if (reads >= throttled_from && reads < throttled_to) reading.throttle_reasons = 0x40;
    return reading;
  }
  std::optional<int> Processes() override { return processes; }

  const FakeDriver* driver = nullptr;
  int reads = 0;
  int reads_of_a_busy_device = 0;
  int throttled_from = 0;
  int throttled_to = 0;
  std::optional<int> processes = 1;
};

class DeviceSamplerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    driver_.kernels["twice"] = [this](const std::vector<float*>&) { ++runs_; };
    kernel_.launches = {{.symbol = "twice", .blocks = 1, .threads = 4}};
    kernel_.buffers = {{.role = BufferSpec::Role::kInput, .element_count = 4},
                       {.role = BufferSpec::Role::kOutput, .element_count = 4}};
    policy_.min_samples = 5;
    policy_.min_repetition_ns = 2'000'000;
    policy_.budget_ns = 100'000'000;
    policy_.patience_ns = 500'000'000;
  }
  DeviceSamples Take() { return Take(&sensors_); }
  DeviceSamples Take(DeviceSensors* sensors) {
    device_ = GpuDevice::Open(driver_, {.ordinal = 0,
                                        .run_limit = std::chrono::seconds(10),
                                        .clock =
                                            [this] {
                                              now_ += std::chrono::milliseconds(1);
                                              return now_;
                                            }})
                  .value();
    auto loaded = device_->Load(kernel_, "code").value();
    auto samples = TakeDeviceSamples(*device_, *loaded, policy_, sensors);
    EXPECT_TRUE(samples.has_value()) << samples.error().message;
    return samples.value();
  }

  FakeDriver driver_;
  FakeSensors sensors_;
  GpuKernel kernel_;
  SamplingPolicy policy_;
  std::unique_ptr<GpuDevice> device_;
  std::chrono::nanoseconds now_{0};
  int runs_ = 0;
};

TEST_F(DeviceSamplerTest, TimesBatchesThatAreLongEnough) {
  const DeviceSamples taken = Take();
  EXPECT_EQ(taken.samples.ns.size(), 5U);
  for (const double ns : taken.samples.ns) EXPECT_NEAR(ns, 250e3, 1);
  EXPECT_GE(static_cast<double>(taken.samples.iterations) * 250e3, 2e6);
  EXPECT_FALSE(taken.is_batched);
  EXPECT_EQ(taken.samples.clock_before_mhz, 1500);
  EXPECT_EQ(taken.after.temperature_c, 60);
  EXPECT_FALSE(taken.was_shared);
  // More runs than were measured: the others raised the clocks.
  EXPECT_GT(runs_, 6 * static_cast<int>(taken.samples.iterations));
}

TEST_F(DeviceSamplerTest, HandsShortKernelsOverTogether) {
  driver_.launch_ms = 0.004F;
  const DeviceSamples taken = Take();
  EXPECT_TRUE(taken.is_batched);
  EXPECT_GT(driver_.batches_started, 0);
  EXPECT_EQ(taken.samples.iterations % 256, 0U);
  for (const double ns : taken.samples.ns) EXPECT_NEAR(ns, 4e3, 1);
  device_.reset();
  EXPECT_EQ(driver_.live_batches, 0);
}

TEST_F(DeviceSamplerTest, HandsManyShortLaunchesOfOneRunOverTogether) {
  driver_.launch_ms = 0.004F;
  kernel_.launches.assign(10, kernel_.launches[0]);
  const DeviceSamples taken = Take();
  EXPECT_TRUE(taken.is_batched);
  EXPECT_EQ(taken.samples.iterations % 25, 0U);
  for (const double ns : taken.samples.ns) EXPECT_NEAR(ns, 40e3, 1);
}

TEST_F(DeviceSamplerTest, HandsOneRunOverTogetherIfItIsLongEnough) {
  driver_.launch_ms = 0.01F;
  kernel_.launches.assign(300, kernel_.launches[0]);
  const DeviceSamples taken = Take();
  EXPECT_TRUE(taken.is_batched);
  EXPECT_EQ(taken.samples.iterations, 1U);
  for (const double ns : taken.samples.ns) EXPECT_NEAR(ns, 3e6, 10);
}

TEST_F(DeviceSamplerTest, GoesWithoutWhereTheDriverCannot) {
  driver_.launch_ms = 0.004F;
  driver_.fails["MakeBatch"] = CudaCode::kNotSupported;
  const DeviceSamples taken = Take();
  EXPECT_FALSE(taken.is_batched);
  EXPECT_EQ(taken.samples.ns.size(), 5U);
}

TEST_F(DeviceSamplerTest, ColdRunsOfSmallTensorsFindTheCacheFullOfSomethingElse) {
  policy_.cache = CacheState::kCold;
  const DeviceSamples taken = Take();
  EXPECT_EQ(taken.samples.iterations, 1U);
  EXPECT_EQ(taken.copies, 1);
  // One per run, including the runs before the first sample.
  EXPECT_EQ(driver_.evictions, runs_);
}

TEST_F(DeviceSamplerTest, ColdRunsOfBigTensorsGoRoundAmongCopies) {
  policy_.cache = CacheState::kCold;
  kernel_.buffers[0].element_count = kernel_.buffers[1].element_count = 1 << 16;
  const DeviceSamples taken = Take();  // 512 KiB per copy, and a cache of 1 MiB
  EXPECT_EQ(taken.copies, 5);
  EXPECT_EQ(taken.samples.iterations % 5, 0U);
  EXPECT_EQ(driver_.evictions, 1);  // before the first run, which estimates the duration
}

TEST_F(DeviceSamplerTest, ColdRunsOfLongKernelsGoOneByOne) {
  policy_.cache = CacheState::kCold;
  kernel_.buffers[0].element_count = kernel_.buffers[1].element_count = 1 << 16;
  driver_.launch_ms = 3000;  // five runs would exceed the time limit
  const DeviceSamples taken = Take();
  EXPECT_EQ(taken.copies, 1);
  EXPECT_EQ(taken.samples.iterations, 1U);
  EXPECT_EQ(driver_.evictions, runs_);
  for (const double ns : taken.samples.ns) EXPECT_NEAR(ns, 3e9, 1e4);
}

// An idle device reports no throttling.
TEST_F(DeviceSamplerTest, ReadsTheSensorsWhileTheDeviceIsAtIt) {
  sensors_.driver = &driver_;
  const DeviceSamples taken = Take();
  EXPECT_EQ(sensors_.reads, 1 + 1 + static_cast<int>(taken.samples.ns.size()));
  EXPECT_EQ(sensors_.reads_of_a_busy_device, sensors_.reads - 1);  // the first read is before
}

TEST_F(DeviceSamplerTest, CountsWhatWasHeldBackAndTakesItAgain) {
  sensors_.throttled_from = 4;  // after the ramp
  sensors_.throttled_to = 6;
  const DeviceSamples taken = Take();
  EXPECT_EQ(taken.throttled, 3);  // a reading flags its own sample and the next
  EXPECT_EQ(std::ranges::count(taken.samples.flags, std::uint8_t{kSampleAccepted}), 5);
  EXPECT_EQ(std::ranges::count(taken.samples.flags, std::uint8_t{kSampleThrottled}), 3);
}

TEST_F(DeviceSamplerTest, TellsTheExtremesOfWhatTheSensorsSaid) {
  sensors_.throttled_from = 4;
  sensors_.throttled_to = 6;
  const DeviceSamples taken = Take();
  EXPECT_EQ(taken.state, (DeviceState{.temperature_c = 70,
                                      .power_w = 300,
                                      .memory_clock_mhz = 1000.0 + sensors_.reads,
                                      .throttle_reasons = 0x40}));
  EXPECT_EQ(Take(nullptr).state, std::nullopt);
}

TEST_F(DeviceSamplerTest, EndsThoughItIsHeldBackForGood) {
  sensors_.throttled_to = 1'000'000'000;
  const DeviceSamples taken = Take();
  EXPECT_EQ(taken.throttled, static_cast<int>(taken.samples.ns.size()));
  EXPECT_FALSE(taken.samples.ns.empty());
}

TEST_F(DeviceSamplerTest, SaysWhoElseHasTheDevice) {
  sensors_.processes = 2;
  EXPECT_TRUE(Take().was_shared);
}

TEST_F(DeviceSamplerTest, StopsAboveTheBound) {
  policy_.cut_above_ns = 1000;
  const DeviceSamples taken = Take();
  EXPECT_EQ(taken.samples.end, SamplingEnd::kCut);
  EXPECT_EQ(taken.samples.ns.size(), 2U);
}

}  // namespace
}  // namespace loopfleet::worker
