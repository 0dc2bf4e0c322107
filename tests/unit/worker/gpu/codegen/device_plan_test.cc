// What runs where: the rules of docs/LOWERING.md, "GPU", on trees for which they can be worked out
// by hand.

#include <gtest/gtest.h>

#include <string>

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
  // a in 333 r 1 [thread] of 3: a' is not split, and starts at multiples of three.
  EXPECT_EQ(StagesOf("benchmark://loop_tool-cuda-v0/3", ""),
            "1 x 32: 3 threads, 192 B local, 3 in registers\n");
  const std::string tail =
      StagesOf("benchmark://loop_tool-cuda-v0/1000", "toggle_mode,up,toggle_mode,up,up");
  EXPECT_EQ(tail, "2 x 256: 334 threads, 192 B local, 3 in registers\n");
}

TEST(DevicePlan, OrdersOfAMatrixProduct) {
  // m, k, n: a line of n for each m.
  EXPECT_EQ(StagesOf("benchmark://mm-v0/mm64_256_64", ""),
            "64 x 256: tile 1x256, 1x1 each, depth 16, 0 staged\n");
  EXPECT_EQ(StagesOf("benchmark://mm-v0/mm64_2048_64", ""),
            "128 x 256: tile 1x1024, 1x4 each, depth 16, 0 staged\n");
  // k, m, n: nothing is outside, so blocks are as large as they get.
  EXPECT_EQ(StagesOf("benchmark://mm-v0/mm1024_1024_1024", "swap_down"),
            "64 x 256: tile 128x128, 8x8 each, depth 16, 2 staged\n");
  // m, n, k: neighbours along n join in.
  EXPECT_EQ(StagesOf("benchmark://mm-v0/mm64_256_64", "down,swap_down"),
            "128 x 128: tile 1x128, 1x1 each, depth 16, 0 staged\n");
}

TEST(DevicePlan, ATileOfTheTree) {
  // m' in 16, k, m in 64, n: the tile is 64 of m by up to 128 of n.
  EXPECT_EQ(StagesOf("benchmark://mm-v0/mm1024_1024_1024", "split_64,down,swap_down"),
            "128 x 256: tile 64x128, 8x4 each, depth 16, 2 staged\n");
}

TEST(DevicePlan, RefusesWhatNeedsTooMuchMemory) {
  const auto replayed =
      looptree::Replay(looptree::BenchmarkUri{"benchmark://mm-v0/mm512_512_512"}, {});
  const auto device = PlanDevice(replayed.value().tree, {.footprint_bytes = 1 << 20});
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, FailureCode::kLimitFootprint);
}

}  // namespace
}  // namespace loopfleet::worker
