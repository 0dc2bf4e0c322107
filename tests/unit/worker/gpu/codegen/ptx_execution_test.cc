// Runs PTX instruction by instruction on the fake driver (tests/support/fake_cuda), through the
// same calls as on a GPU, and compares the results with the reference. The emulation test compiles
// the same functions for the host; this test runs the output of LLVM's NVPTX backend itself.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "common/base/random.h"
#include "common/job/loop_schedule.h"
#include "tests/unit/worker/gpu/codegen/line_sums.h"
#include "tests/unit/worker/gpu/codegen/long_sums.h"
#include "tests/unit/worker/lowering/fuzz_case.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "tests/unit/worker/lowering/program_zoo.h"
#include "worker/gpu/codegen/gpu_compiler.h"
#include "worker/gpu/device/gpu_canary.h"
#include "worker/gpu/device/gpu_device.h"
#include "worker/gpu/device/gpu_meter.h"
#include "worker/gpu/device/nvml.h"

namespace loopfleet::worker {
namespace {

constexpr int kShards = 4;
constexpr int kCasesInShard = 50;
constexpr GpuArch kArch{90};

class PtxExecution : public ::testing::Test {
 protected:
  void SetUp() override {
    device_.reset();  // before the driver that it uses
    auto driver = OpenCudaDriver(LOOPFLEET_FAKE_CUDA_LIBRARY);
    ASSERT_TRUE(driver.has_value()) << driver.error().message;
    driver_ = *std::move(driver);
    auto device = GpuDevice::Open(*driver_, {});
    ASSERT_TRUE(device.has_value()) << device.error().message;
    device_ = *std::move(device);
    compiler_ = GpuCompiler::Create({.arch = kArch, .limits = {}}).value();
  }
  // Empty if the tree gives the reference result.
  std::string Check(const looptree::LoopTree& tree, const std::vector<looptree::Tensor>& inputs,
                    const looptree::Reference& reference) {
    const auto kernel = compiler_->Compile(tree);
    if (!kernel) {
      return kernel.error().message;
    }
    const auto loaded = device_->Load(*kernel, kernel->ptx);
    if (!loaded) return loaded.error().message + "\n" + kernel->ptx;
    const auto outputs = device_->Run(**loaded, inputs);
    if (!outputs) return outputs.error().message + "\n" + kernel->ptx;
    ++ran_;
    return Difference(*outputs, reference);
  }

  std::unique_ptr<CudaDriver> driver_;
  std::unique_ptr<GpuDevice> device_;
  std::unique_ptr<GpuCompiler> compiler_;
  int ran_ = 0;
};

class PtxExecutionFuzz : public PtxExecution, public ::testing::WithParamInterface<int> {};

TEST_P(PtxExecutionFuzz, GivesWhatTheProgramMeans) {
  FuzzCases cases(0x97c0 + static_cast<std::uint64_t>(GetParam()));
  CachedReference references;
  for (int i = 0; ran_ < kCasesInShard; ++i) {
    const FuzzCase fuzz = cases.Next();
    const auto replayed = ReplayJob(fuzz.job);
    ASSERT_TRUE(replayed.has_value()) << ToLine(fuzz);
    const auto& [inputs, reference] = references.Of(replayed->tree.program(), fuzz.input_seed);
    ASSERT_EQ(Check(replayed->tree, inputs, reference), "") << ToLine(fuzz);
  }
}
INSTANTIATE_TEST_SUITE_P(Shard, PtxExecutionFuzz, ::testing::Range(0, kShards));

TEST_F(PtxExecution, EveryKindOfProgram) {
  for (const ZooProgram& zoo : ProgramZoo()) {
    SCOPED_TRACE(zoo.name);
    const auto inputs = SmallIntegers(zoo.program, 3);
    const auto reference = looptree::Evaluate(zoo.program, inputs);
    EXPECT_EQ(Check(PlainTree(zoo.program), inputs, reference), "");
  }
}

// Unlike the host, this machine rejects unaligned accesses of four elements.
TEST_F(PtxExecution, LinesThatAreAlignedOrNot) {
  for (const LineSums& lines : AllLineSums()) {
    SCOPED_TRACE(lines.Name());
    const looptree::LoopTree tree = lines.Tree();
    const auto inputs = SmallIntegers(tree.program(), 3);
    ASSERT_EQ(Check(tree, inputs, looptree::Evaluate(tree.program(), inputs)), "");
  }
}

TEST_F(PtxExecution, LongSums) {
  for (const LongSums& sums : AllLongSums()) {
    SCOPED_TRACE(sums.Name());
    const looptree::LoopTree tree = sums.Tree();
    const auto inputs = SmallIntegers(tree.program(), 3);
    ASSERT_EQ(Check(tree, inputs, looptree::Evaluate(tree.program(), inputs)), "");
  }
}

TEST_F(PtxExecution, ADeviceThatIsNoneSaysSo) {
  EXPECT_TRUE(device_->facts().is_fake);
  EXPECT_EQ(device_->facts().name, "fake");
}

TEST_F(PtxExecution, TheCanaryComesOutRight) {
  const GpuCanary canary = MakeGpuCanary(kArch).value();
  EXPECT_NE(canary.code.find("bar.sync"), std::string::npos);
  EXPECT_NE(canary.code.find(".shared"), std::string::npos);
  const auto right = device_->Check(canary.kernel, canary.code, canary.inputs, canary.outputs);
  EXPECT_TRUE(right.has_value()) << right.error().message;
  auto wrong = canary.outputs;
  wrong[0][4095] += 1;
  EXPECT_FALSE(device_->Check(canary.kernel, canary.code, canary.inputs, wrong).has_value());
}

TEST_F(PtxExecution, PeaksAreWhatTheDeviceShows) {
  const auto peaks = MeasurePeaks(*device_, nullptr);
  ASSERT_TRUE(peaks.has_value()) << peaks.error().message;
  // An instruction of the fake takes 0.05 ns. A multiply-add is two operations, and a few of the
  // instructions are not multiply-adds.
  EXPECT_GT(peaks->flop_per_second, 0.75 * 2 / 0.05e-9);
  EXPECT_LT(peaks->flop_per_second, 2 / 0.05e-9);
  EXPECT_GT(peaks->read_bytes_per_second, 0.9 * 200e9);
  EXPECT_LT(peaks->read_bytes_per_second, 200e9);
}

// A faulty kernel fails with the same codes as on a GPU.
TEST_F(PtxExecution, WrongAddressesAndTrapsLoseTheDevice) {
  for (const auto& [body, code] : std::vector<std::pair<std::string, std::string>>{
           {"mov.u64 %rd1, 16; st.global.u32 [%rd1], %r1;", "illegal address"},
           {"add.s64 %rd1, %rd1, 2; st.global.u32 [%rd1], %r1;", "misaligned address"},
           {"trap;", "launch failed"}}) {
    SetUp();
    // Sticky errors last for the life of the process, so the kernel runs in a forked child.
    const std::string ptx =
        ".version 7.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry hostile(.param .u64 p) {\n.reg .b64 %rd<2>;\n.reg .b32 %r<2>;\n"
        "mov.u32 %r1, 1;\nld.param.u64 %rd1, [p];\n" +
        body + "\nret;\n}\n";
    GpuKernel kernel;
    kernel.launches = {{.symbol = "hostile", .blocks = 1, .threads = 32}};
    kernel.buffers = {{.role = BufferSpec::Role::kOutput, .element_count = 16}};
    EXPECT_EXIT(
        {
          const auto loaded = device_->Load(kernel, ptx);
          if (!loaded) std::_Exit(5);
          const auto ran = device_->Run(**loaded, std::vector<looptree::Tensor>{});
          if (!ran) std::fputs(ran.error().message.c_str(), stderr);
          std::_Exit(device_->lost() ? 3 : 4);
        },
        ::testing::ExitedWithCode(3), code);
  }
}

TEST(Nvml, SaysWhatTheDeviceFeels) {
  auto sensors = OpenNvml("00000000:FA:CE.0", LOOPFLEET_FAKE_NVML_LIBRARY);
  ASSERT_TRUE(sensors.has_value()) << sensors.error().message;
  EXPECT_EQ((*sensors)->DriverVersion(), "0.fake");
  EXPECT_EQ((*sensors)->MaxClockMhz(), 2000);
  EXPECT_EQ((*sensors)->Read(), (SensorReading{.clock_mhz = 1000,
                                               .memory_clock_mhz = 1000,
                                               .temperature_c = 40,
                                               .power_w = 100,
                                               .throttle_reasons = 0}));
  EXPECT_EQ((*sensors)->Processes(), 1);
  const auto other = OpenNvml("00000000:01:00.0", LOOPFLEET_FAKE_NVML_LIBRARY);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().kind, ErrorKind::kUnavailable);
  EXPECT_EQ(OpenNvml("", "libthere-is-none.so.1").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(ThrottleText(0x44), "software power cap, hardware thermal slowdown");
}

}  // namespace
}  // namespace loopfleet::worker
