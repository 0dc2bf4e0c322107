// The mapping rules of docs/LOWERING.md, "GPU", on trees small enough to work out by hand.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/looptree/actions/walk.h"
#include "common/looptree/datasets/benchmark.h"
#include "tests/unit/worker/lowering/program_zoo.h"
#include "worker/gpu/codegen/device_planner.h"

namespace loopfleet::worker {
namespace {

std::string StagesOf(const std::string& uri, const std::string& actions) {
  const auto parsed = looptree::ParseActionList(actions);
  const auto replayed = looptree::Replay(looptree::BenchmarkUri{uri}, parsed.value());
  return DescribeStages(PlanDevice(replayed.value().tree).value());
}

TEST(DevicePlan, AThreadForEachIterationOfThreadedLoops) {
  EXPECT_EQ(StagesOf("benchmark://loop_tool-cuda-v0/1000", ""),
            "4 x 256: 1000 threads, 192 B local, 3 in registers\n");
  EXPECT_EQ(StagesOf("benchmark://loop_tool-cuda-v0/3", ""),
            "1 x 32: 3 threads, 192 B local, 3 in registers\n");
  // 333 r 1 [thread] of 3: a thread for each of the 334 iterations; the inner loop is not split.
  const std::string tail =
      StagesOf("benchmark://loop_tool-cuda-v0/1000", "toggle_mode,up,toggle_mode,up,up");
  EXPECT_EQ(tail, "2 x 256: 334 threads, 192 B local, 3 in registers\n");
}

TEST(DevicePlan, OrdersOfAMatrixProduct) {
  // m, k, n: one line of n per m.
  EXPECT_EQ(StagesOf("benchmark://mm-v0/mm64_256_64", ""),
            "64 x 256: tile 1x256, 1x1 each, depth 16, 0 staged\n");
  EXPECT_EQ(StagesOf("benchmark://mm-v0/mm64_2048_64", ""),
            "128 x 256: tile 1x1024, 1x4 each, depth 16, 0 staged\n");
  // k, m, n: no loop is outside the reduction, so blocks have the maximum size.
  EXPECT_EQ(StagesOf("benchmark://mm-v0/mm1024_1024_1024", "swap_down"),
            "64 x 256: tile 128x128, 8x8 each, depth 16, 2 staged\n");
  // m, n, k: blocks extend along n.
  EXPECT_EQ(StagesOf("benchmark://mm-v0/mm64_256_64", "down,swap_down"),
            "128 x 128: tile 1x128, 1x1 each, depth 16, 0 staged\n");
}

TEST(DevicePlan, ATileOfTheTree) {
  // m in 16 parts, k, m of 64, n: the tile is 64 of m by up to 128 of n.
  EXPECT_EQ(StagesOf("benchmark://mm-v0/mm1024_1024_1024", "split_64,down,swap_down"),
            "128 x 256: tile 64x128, 8x4 each, depth 16, 2 staged\n");
}

TEST(DevicePlan, EachLaunchIsOfARoot) {
  const looptree::LoopTree products = ProductsTree({8, 32, 8}, 16, 16);
  const DevicePlan of_products = PlanDevice(products).value();
  std::vector<looptree::TreeRef> launched;
  for (const Stage& stage : of_products.stages) launched.push_back(stage.root);
  EXPECT_EQ(launched, products.Children(std::nullopt));

  SplitMix64 random(1);
  int together = 0;  // launches of the root of the one before
  for (const ZooProgram& zoo : ProgramZoo()) {
    for (int i = 0; i < 8; ++i) {
      const looptree::LoopTree tree = RandomTree(zoo.program, random);
      const DevicePlan device = PlanDevice(tree).value();
      for (std::size_t stage = 0; stage < device.stages.size(); ++stage) {
        const looptree::TreeRef root = device.stages[stage].root;
        EXPECT_EQ(tree.nodes()[root].depth, 0U) << zoo.name;
        if (stage == 0) continue;
        EXPECT_GE(root, device.stages[stage - 1].root) << zoo.name;
        together += root == device.stages[stage - 1].root ? 1 : 0;
      }
    }
  }
  EXPECT_GT(together, 0) << "no accumulators were filled before a root";
}

TEST(DevicePlan, RefusesWhatNeedsTooMuchMemory) {
  const auto replayed =
      looptree::Replay(looptree::BenchmarkUri{"benchmark://mm-v0/mm512_512_512"}, {});
  const auto device = PlanDevice(replayed.value().tree, {.footprint_bytes = 1 << 20});
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, FailureCode::kLimitFootprint);
}

// Each loop but the last has an iteration for one last element. So iterations are many more than
// elements: twice as many with each such loop.
TEST(DevicePlan, MapsNoMorePointsThan32BitsCount) {
  for (const auto& [loops, stages] :
       std::vector<std::pair<int, std::string>>{{11, "1048576 x 256: 1073731584 points\n"},
                                                {12, "1 x 256: team, 1 iterations\n"},
                                                {20, "1 x 256: team, 1 iterations\n"}}) {
    SCOPED_TRACE(loops);
    ProgramBuilder b;
    constexpr std::int64_t kSize = 1 << 20;
    const auto i = b.Dim("i", kSize);
    const auto m = b.Dim("m", kSize);
    // With a border, so that it is no tile.
    const auto shifted =
        b.GuardedView(b.Read({i}), {m}, {{.input_dim = i, .terms = {{m, 1}}, .constant = -1}}, 0);
    const auto result = b.Apply(looptree::Op::kNegate, {shifted}, {m});
    const auto written = b.Write(result, {m});
    std::vector<looptree::LoopSpec> specs;
    for (int outer = 1; outer < loops; ++outer) specs.push_back({.dim = m, .size = 1, .tail = 1});
    specs.push_back({.dim = m, .size = kSize - (loops - 1)});
    looptree::Schedule schedule(b.program().nodes.size());
    schedule[result].loops = schedule[written].loops = specs;
    const auto tree =
        looptree::LoopTree::Build(std::make_shared<looptree::Program>(b.program()), schedule);
    EXPECT_EQ(DescribeStages(PlanDevice(tree.value()).value()), stages);
  }
}

// A dim of constants alone takes no memory.
TEST(DevicePlan, RefusesLoopsThat32BitsDoNotCount) {
  for (const std::int64_t size : {std::int64_t{1} << 30, (std::int64_t{1} << 30) + 1}) {
    ProgramBuilder b;
    const auto m = b.Dim("m", 2);
    const auto k = b.Dim("k", size);
    const auto product =
        b.Apply(looptree::Op::kMultiply, {b.Read({m}), b.Constant(0.5, {m, k})}, {m, k});
    b.Write(b.Apply(looptree::Op::kAdd, {product}, {m}), {m});
    const auto device = PlanDevice(PlainTree(b.program()));
    ASSERT_EQ(device.has_value(), size == std::int64_t{1} << 30);
    if (device) continue;
    EXPECT_EQ(device.error().code, FailureCode::kUnsupported);
  }
}

}  // namespace
}  // namespace loopfleet::worker
