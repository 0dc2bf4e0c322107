// Compares GPU kernels of every kind, emulated on the host with threads in random order, with the
// interpreter and the reference.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/random.h"
#include "common/job/loop_schedule.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/text/text.h"
#include "tests/unit/worker/gpu/codegen/emulated_device.h"
#include "tests/unit/worker/gpu/codegen/line_sums.h"
#include "tests/unit/worker/gpu/codegen/long_sums.h"
#include "tests/unit/worker/lowering/fuzz_case.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "tests/unit/worker/lowering/program_zoo.h"
#include "worker/gpu/codegen/device_planner.h"

namespace loopfleet::worker {
namespace {

constexpr int kShards = 10;
constexpr int kCasesInShard = 250;

class EmulationFuzz : public ::testing::TestWithParam<int> {};

TEST_P(EmulationFuzz, EqualsTheInterpreter) {
  FuzzCases cases(0x69b0 + static_cast<std::uint64_t>(GetParam()));
  EmulatedDevice device;
  CachedReference references;
  for (int i = 0; i < kCasesInShard; ++i) {
    const FuzzCase fuzz = cases.Next();
    const auto replayed = ReplayJob(fuzz.job);
    ASSERT_TRUE(replayed.has_value()) << replayed.error().message << "\n" << ToLine(fuzz);
    const auto& [inputs, reference] = references.Of(replayed->tree.program(), fuzz.input_seed);
    ASSERT_EQ(device.Check(replayed->tree, inputs, reference, static_cast<std::uint64_t>(i)), "")
        << "case " << i << " of shard " << GetParam() << ":\n"
        << ToLine(fuzz);
  }
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

// Tiles of every kind: loops inside and outside the reduction, remainders along each dim, four
// elements at a time and one.
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

// Two chained products with a shared outermost m: the intermediate lives in one iteration of m.
looptree::LoopTree FusedProducts(std::int64_t between, looptree::Annotation annotation) {
  ProgramBuilder b;
  const auto m = b.Dim("m", 40);
  const auto k = b.Dim("k", 3);
  const auto n = b.Dim("n", between);
  const auto p = b.Dim("p", 5);
  const auto first = b.Apply(looptree::Op::kMultiply, {b.Read({m, k}), b.Read({k, n})}, {m, k, n});
  const auto first_sum = b.Apply(looptree::Op::kAdd, {first}, {m, n});
  const auto second = b.Apply(looptree::Op::kMultiply, {first_sum, b.Read({n, p})}, {m, n, p});
  const auto second_sum = b.Apply(looptree::Op::kAdd, {second}, {m, p});
  const auto result = b.Write(second_sum, {m, p});
  looptree::Schedule schedule(b.program().nodes.size());
  const looptree::LoopSpec outer{.dim = m, .size = 40, .annotation = annotation};
  for (auto node : {first, first_sum}) schedule[node].loops = {outer, {k, 3}, {n, between}};
  for (auto node : {second, second_sum}) schedule[node].loops = {outer, {n, between}, {p, 5}};
  schedule[result].loops = {outer, {p, 5}};
  return looptree::LoopTree::Build(std::make_shared<looptree::Program>(b.program()), schedule)
      .value();
}

// Aligned and unaligned lines, with remainders at their ends.
TEST(Emulation, LinesAndWhatIsLeftOver) {
  EmulatedDevice device;
  for (const LineSums& lines : AllLineSums()) {
    SCOPED_TRACE(lines.Name());
    ExpectRight(device, lines.Tree());
  }
}

// Few sums of many terms.
TEST(Emulation, LongSums) {
  EmulatedDevice device;
  for (const LongSums& sums : AllLongSums()) {
    SCOPED_TRACE(sums.Name());
    ExpectRight(device, sums.Tree());
  }
}

// Every place for an iteration's intermediate: registers, thread-local memory and slots of a
// thread; shared memory and slots of a block.
TEST(Emulation, IntermediatesInEveryPlace) {
  EmulatedDevice device;
  for (const auto& [between, annotation, place] :
       std::vector<std::tuple<std::int64_t, looptree::Annotation, std::string>>{
           {8, looptree::Annotation::kThread, "in registers"},
           {100, looptree::Annotation::kThread, "B local"},
           {400, looptree::Annotation::kThread, "slots"},
           {400, looptree::Annotation::kNone, "B shared"},
           {13000, looptree::Annotation::kNone, "slots"}}) {
    SCOPED_TRACE(std::to_string(between) + " " + place);
    const looptree::LoopTree tree = FusedProducts(between, annotation);
    const std::string stages = DescribeStages(PlanDevice(tree).value());
    EXPECT_NE(stages.find(place), std::string::npos) << stages;
    ExpectRight(device, tree);
  }
}

// A sum that nothing reads, over a loop of threads: each thread has an accumulator of its own.
TEST(Emulation, SumsThatNothingReads) {
  const auto tree = looptree::ParseIr(R"(v:k
v:m
n:2::0,1,:::0:::::
n:5:0,:1,:::0:0;4;0,1;64;0,::,cpu_parallel,::
n:15:0,:0,1,:::0:0;4;0,1;64;0,::,,::
n:1:2,:0,1,:::0:0;4;0,1;64;0,::,,::
i:0,
o:3,
)");
  ASSERT_TRUE(tree) << tree.error().message;
  EmulatedDevice device;
  ExpectRight(device, *tree);
}

// The emulation must detect missing barriers.
TEST(Emulation, NoticesThreadsThatDoNotWait) {
  EmulatedDevice forgetful(EmulatedDevice::Waiting::kForgotten);
  const auto tile = Walked("benchmark://mm-v0/mm64_64_64", "swap_down");
  ASSERT_NE(DescribeStages(PlanDevice(tile).value()).find("2 staged"), std::string::npos);
  for (const looptree::LoopTree& tree : {tile, FusedProducts(400, looptree::Annotation::kNone)}) {
    const auto inputs = SmallIntegers(tree.program(), 7);
    EXPECT_NE(forgetful.Check(tree, inputs, looptree::Evaluate(tree.program(), inputs), 7), "")
        << DescribeStages(PlanDevice(tree).value());
  }
}

// The emulation must detect threads that wait at different barriers.
TEST(Emulation, NoticesThreadsThatWaitApart) {
  EmulatedDevice apart(EmulatedDevice::Waiting::kApart);
  for (const looptree::LoopTree& tree : {Walked("benchmark://mm-v0/mm64_64_64", "swap_down"),
                                         FusedProducts(400, looptree::Annotation::kNone)}) {
    const auto inputs = SmallIntegers(tree.program(), 7);
    const std::string problems =
        apart.Check(tree, inputs, looptree::Evaluate(tree.program(), inputs), 7);
    EXPECT_NE(problems.find("waits in place"), std::string::npos) << problems;
  }
}

}  // namespace
}  // namespace loopfleet::worker
