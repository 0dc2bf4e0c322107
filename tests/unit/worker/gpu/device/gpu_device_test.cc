// GpuDevice on a fake driver.

#include "worker/gpu/device/gpu_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/worker/gpu/device/fake_driver.h"
#include "worker/gpu/device/gpu_meter.h"

namespace loopfleet::worker {
namespace {

using looptree::Tensor;
using enum GpuDevice::Submission;

// out = in + in
class GpuDeviceTest : public ::testing::Test {
 protected:
  GpuDeviceTest() {
    driver_.kernels["twice"] = [](const std::vector<float*>& buffers) {
      for (int i = 0; i < 4; ++i) buffers[1][i] = buffers[0][i] + buffers[0][i];
    };
    kernel_.launches = {{.symbol = "twice", .blocks = 1, .threads = 4}};
    kernel_.buffers = {{.role = BufferSpec::Role::kInput, .element_count = 4},
                       {.role = BufferSpec::Role::kOutput, .element_count = 4}};
  }
  std::unique_ptr<GpuDevice> Open() {
    auto device = GpuDevice::Open(
        driver_, {.ordinal = 0, .run_limit = std::chrono::milliseconds(100), .clock = [this] {
                    now_ += std::chrono::milliseconds(1);
                    return now_;
                  }});
    EXPECT_TRUE(device.has_value()) << device.error().message;
    return *std::move(device);
  }
  // Every resource was released.
  void ExpectTidy() {
    EXPECT_EQ(driver_.live_allocations(), 0);
    EXPECT_EQ(driver_.live_modules, 0);
    EXPECT_EQ(driver_.live_events, 0);
    EXPECT_EQ(driver_.contexts, 0);
  }

  FakeDriver driver_;
  GpuKernel kernel_;
  std::chrono::nanoseconds now_{0};
  const std::vector<Tensor> inputs_ = {{1, 2, 3, 4}};
  const std::vector<Tensor> outputs_ = {{2, 4, 6, 8}};
};

TEST_F(GpuDeviceTest, RunsAndTimesAKernelAndTidiesUp) {
  {
    const auto device = Open();
    EXPECT_EQ(device->facts().name, "Fake GPU");
    auto loaded = device->Load(kernel_, "code");
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    EXPECT_EQ(device->Run(**loaded, inputs_).value(), outputs_);
    EXPECT_EQ(device->Time(**loaded, 8).value(), 8 * 250e3);
    EXPECT_TRUE(device->Check(kernel_, "code", inputs_, outputs_).has_value());
    EXPECT_FALSE(device->lost());
  }
  ExpectTidy();
}

TEST_F(GpuDeviceTest, TimesEachLaunchByItself) {
  for (const auto& [symbol, ms] : {std::pair("short", 1.0F), std::pair("long", 4.0F)}) {
    driver_.kernels[symbol] = [this, ms](const std::vector<float*>&) { driver_.launch_ms = ms; };
  }
  kernel_.launches = {{.symbol = "short"}, {.symbol = "long"}, {.symbol = "short"}};
  {
    const auto device = Open();
    const auto loaded = device->Load(kernel_, "code");
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    EXPECT_EQ((*loaded)->launch_count(), 3U);
    EXPECT_EQ(device->TimeLaunches(**loaded, 1, kSeen).value(),
              (std::vector<double>{1e6, 4e6, 1e6}));
    EXPECT_EQ(driver_.evictions, 0);
    EXPECT_EQ(device->TimeLaunches(**loaded, 2, kHidden).value(),
              (std::vector<double>{2e6, 8e6, 2e6}));
    EXPECT_EQ(driver_.evictions, 6) << "the host gets ahead of the device meanwhile";
    driver_.fails["CreateEvent"] = CudaCode::kOutOfMemory;
    EXPECT_EQ(device->TimeLaunches(**loaded, 9, kHidden).error().code, FailureCode::kRunOom);
    EXPECT_FALSE(device->lost());
  }
  ExpectTidy();
}

TEST_F(GpuDeviceTest, TheHostSubmitsAColdRunWhileTheDeviceIsBusy) {
  kernel_.launches.assign(10, kernel_.launches[0]);
  const auto device = Open();
  const auto loaded = device->Load(kernel_, "code");
  EXPECT_EQ(device->TimeCold(**loaded).value(), 10 * 250e3);
  EXPECT_EQ(driver_.evictions, 10);
}

TEST_F(GpuDeviceTest, ALaunchThatFailsWhileItIsTimedByItself) {
  const auto device = Open();
  const auto loaded = device->Load(kernel_, "code");
  driver_.launch_ends_with = CudaCode::kIllegalAddress;
  const auto timed = device->TimeLaunches(**loaded, 2, kHidden);
  ASSERT_FALSE(timed.has_value());
  EXPECT_EQ(timed.error().code, FailureCode::kRunCrash);
  EXPECT_TRUE(device->lost());
}

// Verification uses small integers, whose sums are exact. Timing uses floats with all mantissa bits
// in use.
TEST_F(GpuDeviceTest, WhatIsTimedWorksOnFloatsThatAreNoSmallIntegers) {
  std::vector<float> seen;
  driver_.kernels["twice"] = [&](const std::vector<float*>& buffers) {
    seen.assign(buffers[0], buffers[0] + 4);
  };
  const auto device = Open();
  auto loaded = device->Load(kernel_, "code");
  ASSERT_TRUE(device->SetRandomInputs(**loaded).has_value());
  ASSERT_TRUE(device->Time(**loaded, 1).has_value());
  for (const float value : seen) {
    EXPECT_GE(value, 0.5F);
    EXPECT_LT(value, 1.5F);
    EXPECT_NE(value * 1024, std::floor(value * 1024));
  }
  EXPECT_NE(seen[0], seen[1]);
  (void)device->Run(**loaded, inputs_);
  EXPECT_EQ(seen, inputs_[0]);
}

TEST_F(GpuDeviceTest, PeaksAreThoseOfRisenClocks) {
  driver_.kernels["peak"] = [](const std::vector<float*>&) {};
  driver_.facts_of_all.memory_bytes = 8 << 20;  // an eighth of it is copied
  driver_.launch_ms_after = [](float worked_ms) { return worked_ms < 100 ? 4.0F : 1.0F; };
  const auto device = Open();
  const auto peaks = MeasurePeaks(*device, nullptr);
  ASSERT_TRUE(peaks.has_value()) << peaks.error().message;
  // 4 multiprocessors of 8 blocks of 256 threads, 8,192 multiply-adds each, in a millisecond.
  EXPECT_NEAR(peaks->flop_per_second, 4.0 * 8 * 256 * 8192 * 2 / 1e-3, 1e6);
}

TEST_F(GpuDeviceTest, OutputsAreFullOfNanBeforeARun) {
  driver_.kernels["twice"] = [](const std::vector<float*>&) {};
  const auto device = Open();
  auto loaded = device->Load(kernel_, "code");
  const auto outputs = device->Run(**loaded, inputs_).value();
  EXPECT_TRUE(std::ranges::all_of(outputs[0], [](float value) { return std::isnan(value); }));
}

TEST_F(GpuDeviceTest, NoSuchDevice) {
  const auto second = GpuDevice::Open(driver_, {.ordinal = 1});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(second.error().message.find("cuda:1"), std::string::npos) << second.error().message;
  ::setenv("CUDA_VISIBLE_DEVICES", "3", 1);
  const auto hidden = GpuDevice::Open(driver_, {.ordinal = 1});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_NE(hidden.error().message.find("CUDA_VISIBLE_DEVICES=3"), std::string::npos);
  driver_.fails["EnterContext"] = CudaCode::kOutOfMemory;
  const auto taken = GpuDevice::Open(driver_, {});
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().kind, ErrorKind::kUnavailable);
  ExpectTidy();
}

TEST_F(GpuDeviceTest, AnOldDriverRefusesTheCode) {
  driver_.fails["LoadModule"] = CudaCode::kUnsupportedPtxVersion;
  const auto device = Open();
  const auto loaded = device->Load(kernel_, "code");
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, FailureCode::kCompileError);
  EXPECT_NE(loaded.error().message.find("newer than the driver"), std::string::npos);
  EXPECT_FALSE(device->lost());
}

TEST_F(GpuDeviceTest, TooMuchMemoryIsTheJobsFailure) {
  driver_.memory_limit = 8;
  const auto device = Open();
  const auto loaded = device->Load(kernel_, "code");
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, FailureCode::kRunOom);
  EXPECT_FALSE(device->lost());
  EXPECT_EQ(driver_.live_modules, 0);
}

TEST_F(GpuDeviceTest, StickyErrorsLoseTheDevice) {
  for (const auto& [code, expected] : std::vector<std::pair<CudaCode, FailureCode>>{
           {CudaCode::kIllegalAddress, FailureCode::kRunCrash},
           {CudaCode::kMisalignedAddress, FailureCode::kRunCrash},
           {CudaCode::kLaunchFailed, FailureCode::kRunCrash},
           {CudaCode::kIllegalInstruction, FailureCode::kRunCrash},
           {CudaCode::kLaunchTimeout, FailureCode::kRunTimeout},
           {CudaCode::kEccUncorrectable, FailureCode::kDeviceFault},
           {CudaCode::kUnknown, FailureCode::kDeviceFault},
           // Codes without a name here: a broken NVLink, a code of a later driver.
           {static_cast<CudaCode>(220), FailureCode::kDeviceFault},
           {static_cast<CudaCode>(987), FailureCode::kDeviceFault}}) {
    SCOPED_TRACE(NameOf(code));
    FakeDriver driver;
    driver.kernels = driver_.kernels;
    auto device = GpuDevice::Open(driver, {}).value();
    auto loaded = device->Load(kernel_, "code").value();
    driver.launch_ends_with = code;
    const auto ran = device->Run(*loaded, inputs_);
    ASSERT_FALSE(ran.has_value());
    EXPECT_EQ(ran.error().code, expected) << ran.error().message;
    EXPECT_TRUE(device->lost());
    // No further driver call is made, not even to clean up: only the end of the process helps.
    const std::size_t calls = driver.calls.size();
    const auto again = device->Load(kernel_, "code");
    ASSERT_FALSE(again.has_value());
    EXPECT_EQ(again.error().code, FailureCode::kDeviceFault);
    loaded.reset();
    device.reset();
    EXPECT_EQ(driver.calls.size(), calls);
  }
}

TEST_F(GpuDeviceTest, WhatOnlyOneCallCannotDoLeavesTheDevice) {
  const auto device = Open();
  for (const CudaCode code :
       {CudaCode::kInvalidValue, CudaCode::kOutOfMemory, CudaCode::kInvalidImage,
        CudaCode::kNoBinaryForGpu, CudaCode::kInvalidPtx, CudaCode::kNoPtxCompiler,
        CudaCode::kOutOfResources, CudaCode::kNotSupported}) {
    SCOPED_TRACE(NameOf(code));
    driver_.fails["LoadModule"] = code;
    EXPECT_FALSE(device->Load(kernel_, "code").has_value());
    EXPECT_FALSE(device->lost());
  }
  driver_.fails.clear();
  EXPECT_TRUE(device->Check(kernel_, "code", inputs_, outputs_).has_value());
}

TEST_F(GpuDeviceTest, AKernelThatDoesNotEndLosesTheDevice) {
  const auto device = Open();
  auto loaded = device->Load(kernel_, "code");
  driver_.launches_never_end = true;
  const auto ran = device->Run(**loaded, inputs_);
  ASSERT_FALSE(ran.has_value());
  EXPECT_EQ(ran.error().code, FailureCode::kRunTimeout);
  EXPECT_NE(ran.error().message.find("100 ms"), std::string::npos) << ran.error().message;
  EXPECT_TRUE(device->lost());
}

TEST_F(GpuDeviceTest, TheCheckNoticesForgetfulMemoryAndWrongResults) {
  const auto device = Open();
  driver_.memory_forgets = true;
  const auto forgets = device->Check(kernel_, "code", inputs_, outputs_);
  ASSERT_FALSE(forgets.has_value());
  EXPECT_EQ(forgets.error().code, FailureCode::kDeviceFault);
  EXPECT_NE(forgets.error().message.find("memory"), std::string::npos);
  driver_.memory_forgets = false;
  const auto wrong = device->Check(kernel_, "code", inputs_, {{2, 4, 6, 9}});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().message.find("canary"), std::string::npos);
  EXPECT_TRUE(device->Check(kernel_, "code", inputs_, outputs_).has_value());
}

TEST(CudaDriver, SaysWhatIsMissing) {
  const auto none = OpenCudaDriver("libthere-is-no-such-driver.so.1");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(none.error().message.find("NVIDIA's driver"), std::string::npos);
  const auto other = OpenCudaDriver("libm.so.6");
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().kind, ErrorKind::kSystem);
  EXPECT_NE(other.error().message.find("too old"), std::string::npos);
}

}  // namespace
}  // namespace loopfleet::worker
