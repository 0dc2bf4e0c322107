// GpuProbe on the fake driver (tests/support/fake_cuda), with old or incomplete installations.

#include "worker/gpu/device/gpu_probe.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace loopfleet::worker {
namespace {

class GpuProbeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // From here on the loader returns this library for libcuda.so.1.
    ASSERT_NE(::dlopen(LOOPFLEET_FAKE_CUDA_LIBRARY, RTLD_NOW), nullptr) << ::dlerror();
    ::setenv("LOOPFLEET_NVJITLINK", LOOPFLEET_FAKE_NVJITLINK_LIBRARY, 1);
  }
  void TearDown() override {
    ::unsetenv("LOOPFLEET_NVJITLINK");
    ::unsetenv("LOOPFLEET_FAKE_CUDA");
    std::filesystem::remove(control_);
  }
  Result<GpuProbe> Probe(const std::string& control) {
    std::ofstream(control_) << control;
    ::setenv("LOOPFLEET_FAKE_CUDA", control_.c_str(), 1);
    return ProbeGpu(0);
  }

  const std::string control_ = testing::TempDir() + "gpu_probe_test." + std::to_string(::getpid());
};

TEST_F(GpuProbeTest, NvJitLinkAssemblesWhereTheDriverTakesWhatItMakes) {
  const auto probe = Probe("");
  ASSERT_TRUE(probe.has_value()) << probe.error().message;
  EXPECT_EQ(probe->assembler, GpuAssembler::kNvJitLink);
  EXPECT_EQ(probe->why_driver, "");
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

TEST_F(GpuProbeTest, OneThatTakesNothingIsRefused) {
  const auto probe = Probe("cubin 209\nptx 222\n");
  ASSERT_FALSE(probe.has_value());
  EXPECT_NE(probe.error().message.find("PTX newer than the driver"), std::string::npos)
      << probe.error().message;
}

}  // namespace
}  // namespace loopfleet::worker
