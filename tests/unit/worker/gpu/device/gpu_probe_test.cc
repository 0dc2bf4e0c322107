// GpuProbe on the fake driver (tests/support/fake_cuda), with old or incomplete installations.

#include "worker/gpu/device/gpu_probe.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace loopfleet::worker {
namespace {

class GpuProbeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // From here on the loader returns these libraries for NVIDIA's.
    ASSERT_NE(::dlopen(LOOPFLEET_FAKE_CUDA_LIBRARY, RTLD_NOW), nullptr) << ::dlerror();
    ASSERT_NE(::dlopen(LOOPFLEET_FAKE_NVML_LIBRARY, RTLD_NOW), nullptr) << ::dlerror();
    ::setenv("LOOPFLEET_NVJITLINK", LOOPFLEET_FAKE_NVJITLINK_LIBRARY, 1);
  }
  void TearDown() override {
    ::unsetenv("LOOPFLEET_NVJITLINK");
    ::unsetenv("LOOPFLEET_FAKE_CUDA");
    std::filesystem::remove(control_);
  }
  Result<GpuProbe> Probe(const std::string& control,
                         std::chrono::milliseconds limit = std::chrono::seconds(120)) {
    std::ofstream(control_) << control;
    ::setenv("LOOPFLEET_FAKE_CUDA", control_.c_str(), 1);
    return ProbeGpu(0, limit);
  }

  const std::string control_ = testing::TempDir() + "gpu_probe_test." + std::to_string(::getpid());
};

TEST_F(GpuProbeTest, NvJitLinkAssemblesWhereTheDriverTakesWhatItMakes) {
  const auto probe = Probe("");
  ASSERT_TRUE(probe.has_value()) << probe.error().message;
  EXPECT_EQ(probe->assembler, GpuAssembler::kNvJitLink);
  EXPECT_EQ(probe->why_driver, "");
  EXPECT_EQ(probe->no_peaks, "");
  EXPECT_GT(probe->peaks.flop_per_second, 0);
}

TEST_F(GpuProbeTest, AnOldDriverAssemblesItself) {
  const auto probe = Probe("cubin 209\ndriver 12020\nno_graphs 1\n");
  ASSERT_TRUE(probe.has_value()) << probe.error().message;
  EXPECT_EQ(probe->assembler, GpuAssembler::kDriver);
  EXPECT_EQ(probe->assembler_name, "driver of CUDA 12.2");
  EXPECT_NE(probe->why_driver.find("does not take the code"), std::string::npos);
  EXPECT_EQ(probe->canary_code.find("\177ELF"), std::string::npos);
}

// A container may lack the driver's PTX compiler. With nvJitLink it is not needed.
TEST_F(GpuProbeTest, ADriverWithoutItsCompilerOfPtxWillDo) {
  const auto probe = Probe("ptx 221\n");
  ASSERT_TRUE(probe.has_value()) << probe.error().message;
  EXPECT_EQ(probe->assembler, GpuAssembler::kNvJitLink);
  EXPECT_GT(probe->peaks.flop_per_second, 0);
}

TEST_F(GpuProbeTest, PeaksMeasuredBesideAnotherUserOrWhileHeldBackAreNotKept) {
  for (const auto& [control, why] :
       {std::pair("processes 2\n", "another process"), std::pair("throttle 0x40\n", "thermal")}) {
    SCOPED_TRACE(control);
    const auto probe = Probe(control);
    ASSERT_TRUE(probe.has_value()) << probe.error().message;
    EXPECT_EQ(probe->peaks, DevicePeaks());
    EXPECT_NE(probe->no_peaks.find(why), std::string::npos) << probe->no_peaks;
  }
}

TEST_F(GpuProbeTest, ADeviceThatDoesNotAnswerIsGivenUp) {
  const auto probe = Probe("hangs 0\n", std::chrono::milliseconds(100));
  ASSERT_FALSE(probe.has_value());
  EXPECT_EQ(probe.error().kind, ErrorKind::kTimeout) << probe.error().message;
}

TEST_F(GpuProbeTest, ADriverThatDoesNotStartMayLackItsModule) {
  const auto probe = Probe("init 999\n");
  ASSERT_FALSE(probe.has_value());
  EXPECT_NE(probe.error().message.find("nvidia-modprobe -c 0 -u"), std::string::npos)
      << probe.error().message;
}

TEST_F(GpuProbeTest, OneThatTakesNothingIsRefused) {
  const auto probe = Probe("cubin 209\nptx 222\n");
  ASSERT_FALSE(probe.has_value());
  EXPECT_NE(probe.error().message.find("PTX newer than the driver"), std::string::npos)
      << probe.error().message;
}

}  // namespace
}  // namespace loopfleet::worker
