// Assembles PTX of every kind of tree with nvJitLink for three generations of devices. Needs no
// GPU. Without nvJitLink these tests are skipped and say how to install it.
//
// LOOPFLEET_GPU_TREES=200 sets the number of random trees (default 24), LOOPFLEET_GPU_SEED their
// seed.

#include "worker/gpu/codegen/gpu_compiler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <string>

#include "common/base/random.h"
#include "common/job/job_spec.h"
#include "common/job/loop_schedule.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/text/text.h"
#include "tests/unit/worker/gpu/codegen/line_sums.h"
#include "tests/unit/worker/gpu/codegen/long_sums.h"
#include "tests/unit/worker/lowering/fuzz_case.h"
#include "tests/unit/worker/lowering/program_zoo.h"
#include "worker/gpu/codegen/device_plan.h"
#include "worker/gpu/codegen/ptx_assembler.h"

namespace loopfleet::worker {
namespace {

constexpr GpuArch kArchs[] = {GpuArch{80}, GpuArch{90}, GpuArch{100}};
constexpr int kShards = 3;  // one per architecture

int Setting(const char* name, int otherwise) {
  const char* wanted = std::getenv(name);
  return wanted == nullptr ? otherwise : std::atoi(wanted);
}

std::unique_ptr<GpuCompiler> CompilerFor(GpuArch arch) {
  return GpuCompiler::Create({.arch = arch, .limits = {}}).value();
}

looptree::LoopTree Walked(const std::string& uri, const std::string& actions) {
  const auto parsed = looptree::ParseActionList(actions);
  return looptree::Replay(looptree::BenchmarkUri{uri}, parsed.value(),
                          {.on_illegal = looptree::OnIllegal::kSkip})
      .value()
      .tree;
}

// Bytes of register spills that the assembler reports.
int SpilledBytes(const std::string& log) {
  int bytes = 0;
  const std::regex pattern("(\\d+) bytes spill (stores|loads)");
  for (std::sregex_iterator at(log.begin(), log.end(), pattern), end; at != end; ++at) {
    bytes += std::stoi((*at)[1]);
  }
  return bytes;
}

TEST(GpuCompiler, TheSameTreeGivesTheSamePtx) {
  const auto tree = Walked("benchmark://mm-v0/mm64_64_64", "down,swap_up");
  const auto first = CompilerFor(GpuArch{80})->Compile(tree).value();
  const auto compiler = CompilerFor(GpuArch{80});
  ASSERT_TRUE(compiler->Compile(Walked("benchmark://mm-v0/mm64_32_64", "split_8")).has_value());
  EXPECT_EQ(compiler->Compile(tree).value().ptx, first.ptx);
  EXPECT_NE(first.ptx.find(".target sm_80"), std::string::npos);
}

TEST(GpuCompiler, NewDevicesGetPtxThatLlvmKnows) {
  const auto tree = Walked("benchmark://loop_tool-cuda-v0/1024", "");
  for (int number : {90, 100, 103, 120}) {
    const auto kernel = CompilerFor(GpuArch{number})->Compile(tree).value();
    EXPECT_NE(kernel.ptx.find(".target sm_90"), std::string::npos) << number;
  }
}

TEST(GpuCompiler, SaysWhichAnnotationsDidNothing) {
  const auto threaded =
      CompilerFor(GpuArch{80})->Compile(Walked("benchmark://loop_tool-cuda-v0/1024", "")).value();
  EXPECT_TRUE(threaded.notes.empty()) << threaded.notes.front();
  const auto vectorised = CompilerFor(GpuArch{80})
                              ->Compile(Walked("benchmark://mm-v0/mm64_64_64", "vectorize"))
                              .value();
  EXPECT_EQ(vectorised.notes, std::vector<std::string>{"L0 vectorize"});
}

TEST(GpuCompiler, MovesFourAtATimeWhereAligned) {
  const auto kernel = CompilerFor(GpuArch{80})
                          ->Compile(Walked("benchmark://mm-v0/mm64_64_64", "swap_down"))
                          .value();
  EXPECT_NE(kernel.ptx.find("ld.global.nc.v4.f32"), std::string::npos) << kernel.ptx;
  EXPECT_NE(kernel.ptx.find("ld.shared.v4.f32"), std::string::npos);
  EXPECT_NE(kernel.ptx.find("st.global.v4.f32"), std::string::npos);
}

class Assembled : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    auto opened = OpenNvJitLink();
    if (!opened.has_value()) GTEST_SKIP() << "NOT TESTED: " << opened.error().message;
    assembler_ = *std::move(opened);
  }
  void ExpectAssembles(GpuCompiler& compiler, const looptree::LoopTree& tree, bool may_spill) {
    const auto kernel = compiler.Compile(tree);
    ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
    const auto cubin = assembler_->Assemble(kernel->ptx, arch());
    ASSERT_TRUE(cubin.has_value()) << cubin.error().message << "\n" << kernel->ptx;
    ASSERT_EQ(cubin->bytes.substr(0, 4), "\177ELF");
    if (!may_spill) {
      ASSERT_NE(cubin->log.find("bytes spill stores"), std::string::npos) << cubin->log;
      EXPECT_EQ(SpilledBytes(cubin->log), 0) << cubin->log << TreeText(tree, {});
    }
    ++assembled_;
  }
  GpuArch arch() const { return kArchs[GetParam()]; }

  std::unique_ptr<PtxAssembler> assembler_;
  int assembled_ = 0;
};

TEST_P(Assembled, RandomTrees) {
  // The same trees for each architecture.
  FuzzCases cases(0xa55e + static_cast<std::uint64_t>(Setting("LOOPFLEET_GPU_SEED", 0)));
  const auto compiler = CompilerFor(arch());
  const int wanted = Setting("LOOPFLEET_GPU_TREES", 24);
  for (int i = 0; assembled_ < wanted; ++i) {
    const FuzzCase fuzz = cases.Next();
    const auto replayed = ReplayJob(fuzz.job);
    ASSERT_TRUE(replayed.has_value());
    ExpectAssembles(*compiler, replayed->tree, true);
    if (HasFatalFailure()) FAIL() << ToLine(fuzz);
  }
}

TEST_P(Assembled, TheStandardSetWithoutSpills) {
  const auto compiler = CompilerFor(arch());
  for (const ZooProgram& zoo : ProgramZoo()) {
    SCOPED_TRACE(zoo.name);
    ExpectAssembles(*compiler, PlainTree(zoo.program), false);
  }
  for (const LongSums& sums : {LongSums{.terms = 1 << 20}, LongSums{.sums = 3, .terms = 5001}}) {
    SCOPED_TRACE(sums.Name());
    ExpectAssembles(*compiler, sums.Tree(), false);
  }
  for (const LineSums& lines : {LineSums{.lines = 40, .width = 64, .inner = 8},
                                LineSums{.lines = 40, .width = 61, .all_threaded = true}}) {
    SCOPED_TRACE(lines.Name());
    ExpectAssembles(*compiler, lines.Tree(), false);
  }
  for (const auto& [uri, actions] : std::vector<std::pair<const char*, const char*>>{
           {"benchmark://loop_tool-cuda-v0/8388607", ""},
           {"benchmark://loop_tool-cuda-v0/4194304", "toggle_thread"},
           {"benchmark://mm-v0/mm256_256_256", ""},
           {"benchmark://mm-v0/mm1024_1024_1024", "swap_down"},
           {"benchmark://mm-v0/mm100_100_100", "swap_down"},
           {"benchmark://mm-v0/mm1024_1024_1024",
            "split_64,down,swap_down,down,swap_down,split_64,swap_up,swap_up"},
           {"benchmark://conv-v0/conv1_16_30_30__32_16_3_3", ""}}) {
    SCOPED_TRACE(std::string(uri) + " " + actions);
    ExpectAssembles(*compiler, Walked(uri, actions), false);
  }
}

INSTANTIATE_TEST_SUITE_P(Arch, Assembled, ::testing::Range(0, kShards));

}  // namespace
}  // namespace loopfleet::worker
