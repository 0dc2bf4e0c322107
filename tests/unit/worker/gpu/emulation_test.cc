// GPU kernels of every kind, run by threads that the host plays in random order, against the
// interpreter and what the program means.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/base/random.h"
#include "common/looptree/benchmark.h"
#include "common/looptree/text.h"
#include "tests/unit/worker/gpu/emulated_device.h"
#include "tests/unit/worker/lowering/fuzz_case.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "tests/unit/worker/lowering/program_zoo.h"

namespace loopfleet::worker {
namespace {

constexpr int kShards = 10;
constexpr int kCasesInShard = 250;

class EmulationFuzz : public ::testing::TestWithParam<int> {};

TEST_P(EmulationFuzz, EqualsTheInterpreter) {
  FuzzCases cases(0x69b0 + static_cast<std::uint64_t>(GetParam()));
  EmulatedDevice device;
  CachedReference references;
  for (int i = 0; i < kCasesInShard + device.refused(); ++i) {
    const FuzzCase fuzz = cases.Next();
    const auto replayed = ReplayJob(fuzz.job);
    ASSERT_TRUE(replayed.has_value()) << replayed.error().message << "\n" << ToLine(fuzz);
    const auto& [inputs, reference] = references.Of(replayed->tree.program(), fuzz.input_seed);
    ASSERT_EQ(device.Check(replayed->tree, inputs, reference, static_cast<std::uint64_t>(i)), "")
        << "case " << i << " of shard " << GetParam() << ":\n"
        << ToLine(fuzz);
  }
  EXPECT_LT(device.refused(), kCasesInShard / 4) << "too many are not compared at all";
}
INSTANTIATE_TEST_SUITE_P(Shard, EmulationFuzz, ::testing::Range(0, kShards));

void ExpectRight(EmulatedDevice& device, const looptree::LoopTree& tree, std::uint64_t seed = 7) {
  const auto inputs = SmallIntegers(tree.program(), seed);
  ASSERT_EQ(device.Check(tree, inputs, looptree::Evaluate(tree.program(), inputs), seed), "");
}

TEST(Emulation, EveryKindOfProgram) {
  EmulatedDevice device;
  for (const ZooProgram& zoo : ProgramZoo()) {
    SCOPED_TRACE(zoo.name);
    ExpectRight(device, PlainTree(zoo.program));
    SplitMix64 random(11);
    for (int i = 0; i < 5; ++i) ExpectRight(device, RandomTree(zoo.program, random));
  }
}

looptree::LoopTree Walked(const std::string& uri, const std::string& actions) {
  const auto parsed = looptree::ParseActionList(actions);
  auto replayed = looptree::Replay(looptree::BenchmarkUri{uri}, parsed.value(),
                                   {.on_illegal = looptree::OnIllegal::kSkip});
  return std::move(replayed).value().tree;
}

// Tiles of every make: loops inside the reduction and outside it, parts left over along each dim,
// four elements at a time and one.
TEST(Emulation, Tiles) {
  EmulatedDevice device;
  for (const char* sizes :
       {"mm64_64_64", "mm65_33_17", "mm40_132_36", "mm130_20_50", "mm9_260_7"}) {
    const std::string uri = std::string("benchmark://mm-v0/") + sizes;
    for (const char* actions :
         {"", "down,swap_up", "down,down,swap_up", "split_16", "split_16,down,swap_down",
          "swap_down,split_8", "down,split_4", "down,split_8,swap_up",
          "split_32,down,swap_down,down,split_16,swap_up", "down,down,split_32,swap_up,swap_up"}) {
      SCOPED_TRACE(uri + " " + actions);
      ExpectRight(device, Walked(uri, actions));
    }
  }
}

TEST(Emulation, VectorsOfTheSimpleDialect) {
  EmulatedDevice device;
  for (const char* size : {"1", "31", "1024", "3333", "70000"}) {
    for (const char* actions : {"", "toggle_thread", "toggle_mode,up,toggle_mode,up,up,up",
                                "toggle_mode,up,toggle_thread,toggle_mode,up,up,up,up",
                                "toggle_mode,up,up,toggle_thread"}) {
      SCOPED_TRACE(std::string(size) + " " + actions);
      ExpectRight(device, Walked(std::string("benchmark://loop_tool-cuda-v0/") + size, actions));
    }
  }
}

}  // namespace
}  // namespace loopfleet::worker
