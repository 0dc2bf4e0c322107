// LaunchSampler on a fake driver.

#include "worker/gpu/device/launch_sampler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "tests/unit/worker/gpu/device/fake_driver.h"
#include "worker/gpu/device/gpu_judge.h"

namespace loopfleet::worker {
namespace {

class LaunchSamplerTest : public ::testing::Test {
 protected:
  // A launch that takes `ms`, and one that takes four times as long.
  std::expected<LaunchTimes, Failure> TakeOneToFour(float ms) {
    driver_.kernels["first"] = [this, ms](const auto&) { driver_.launch_ms = ms; };
    driver_.kernels["second"] = [this, ms](const auto&) { driver_.launch_ms = 4 * ms; };
    return TakeTimes({{.symbol = "first"}, {.symbol = "second"}});
  }
  std::expected<LaunchTimes, Failure> TakeTimes(std::vector<GpuLaunch> launches) {
    GpuKernel kernel;
    kernel.launches = std::move(launches);
    driver_.facts_of_all.l2_bytes = 1024;  // evictions are many
    kernel.buffers = {{.role = BufferSpec::Role::kInput, .element_count = 4}};
    device_ = GpuDevice::Open(driver_, {.ordinal = 0,
                                        .run_limit = std::chrono::seconds(10),
                                        .clock =
                                            [this] {
                                              now_ += std::chrono::milliseconds(1);
                                              return now_;
                                            }})
                  .value();
    loaded_ = device_->Load(kernel, "code").value();
    return TakeLaunchTimes(*device_, *loaded_);
  }
  static void ExpectOneToFour(const LaunchTimes& times) {
    const std::vector<looptree::TreeRef> roots = {0, 5};
    const Profile profile = ProfileOfLaunches(roots, times).value();
    ASSERT_EQ(profile.lines.size(), 3U);
    EXPECT_NEAR(profile.lines[0].share, 0.2, 0.001);
    EXPECT_NEAR(profile.lines[1].share, 0.8, 0.001);
    EXPECT_NEAR(profile.overhead, 0, 0.001);  // the fake's events take no time
  }

  FakeDriver driver_;
  std::chrono::nanoseconds now_{0};
  std::unique_ptr<GpuDevice> device_;
  std::unique_ptr<GpuDevice::Loaded> loaded_;
};

TEST_F(LaunchSamplerTest, ALongKernelRunsOnceATurn) {
  const auto times = TakeOneToFour(0.5F);
  ASSERT_TRUE(times.has_value()) << times.error().message;
  EXPECT_EQ(times->runs, 1U);
  EXPECT_NEAR(times->plain_ns, 2.5e6, 1e3);
  EXPECT_EQ(driver_.batches_started, 0);
  EXPECT_EQ(driver_.evictions, 0);
  ExpectOneToFour(*times);
}

TEST_F(LaunchSamplerTest, AShortKernelRunsOftenEnoughATurn) {
  const auto times = TakeOneToFour(0.002F);
  ASSERT_TRUE(times.has_value()) << times.error().message;
  EXPECT_NEAR(static_cast<double>(times->runs), 50, 1);
  EXPECT_NEAR(times->plain_ns, 10e3, 10);
  EXPECT_GT(driver_.batches_started, 0);
  EXPECT_GE(times->turns.size(), 3U);
  EXPECT_LE(times->turns.size(), kMostLaunchTurns);
  ExpectOneToFour(*times);
}

// Otherwise their times would be those of the host's submission.
TEST_F(LaunchSamplerTest, ARunOfManyShortLaunchesFindsTheDeviceBusy) {
  for (const float last_ms : {0.002F, 0.6F}) {
    SCOPED_TRACE(last_ms);
    driver_.evictions = driver_.batches_started = 0;
    driver_.kernels["short"] = [this](const auto&) { driver_.launch_ms = 0.002F; };
    driver_.kernels["last"] = [this, last_ms](const auto&) { driver_.launch_ms = last_ms; };
    std::vector<GpuLaunch> launches(100, {.symbol = "short"});
    launches.push_back({.symbol = "last"});
    const auto times = TakeTimes(launches);
    ASSERT_TRUE(times.has_value()) << times.error().message;
    EXPECT_EQ(times->runs, 1U);
    EXPECT_EQ(driver_.evictions, 101 * static_cast<int>(times->turns.size()));
    EXPECT_GT(driver_.batches_started, 0);
    loaded_.reset();
  }
}

TEST_F(LaunchSamplerTest, ADriverWithoutGraphsTimesRunsOneByOne) {
  driver_.fails["MakeBatch"] = CudaCode::kNotSupported;
  const auto times = TakeOneToFour(0.002F);
  ASSERT_TRUE(times.has_value()) << times.error().message;
  EXPECT_EQ(driver_.batches_started, 0);
  ExpectOneToFour(*times);
}

TEST_F(LaunchSamplerTest, AFailureIsHandedOn) {
  driver_.launch_ends_with = CudaCode::kLaunchFailed;
  const auto times = TakeOneToFour(0.5F);
  ASSERT_FALSE(times.has_value());
  EXPECT_EQ(times.error().code, FailureCode::kRunCrash);
}

}  // namespace
}  // namespace loopfleet::worker
