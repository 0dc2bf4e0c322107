#include "worker/cpu/packing.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>

#include "common/looptree/actions/walk.h"
#include "common/looptree/tree/transform.h"
#include "worker/lowering/direct_writes.h"

namespace loopfleet::worker {
namespace {

constexpr VectorShape kShape{.lanes = 16, .registers = 32, .masks = true};
// m split by 4, n split by 32, all of k, and inside it a tile of 4 by 32.
constexpr const char* kTiled = "split_4,down,swap_down,down,split_32,swap_up,swap_up";
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 40;

looptree::LoopTree TreeOf(const std::string& uri, const std::string& actions) {
  return looptree::Replay(looptree::BenchmarkUri{uri}, looptree::ParseActionList(actions).value())
      .value()
      .tree;
}

KernelPlan PlanOf(const looptree::LoopTree& tree, std::uint32_t threads) {
  KernelPlan plan = PlanKernel(tree, {.threads = threads}).value();
  WriteDirectly(plan);
  return plan;
}

KernelPlan PlanOf(const std::string& uri, const std::string& actions) {
  return PlanOf(TreeOf(uri, actions), 1);
}

// Bytes of the panels. 0: nothing was packed.
std::uint64_t Packed(KernelPlan plan, std::uint64_t footprint_bytes = kNoLimit) {
  const std::uint64_t before = plan.scratch_bytes;
  PackPanels(plan, kShape, footprint_bytes);
  return plan.scratch_bytes - before;
}

TEST(PackPanels, TakesRowsThatLieFarApart) {
  EXPECT_EQ(Packed(PlanOf("benchmark://mm-v0/mm1024_1024_1024", kTiled)), 1024U * 1024 * 4);
  EXPECT_EQ(Packed(PlanOf("benchmark://mm-v0/mm64_256_100", kTiled)), 256U * 100 * 4);
  EXPECT_EQ(Packed(PlanOf("benchmark://mm-v0/mm64_288_100", kTiled)), 288U * 100 * 4);
}

TEST(PackPanels, RoundsTheLastPanelUp) {
  // 1024 columns in strips of 48: 22 panels.
  EXPECT_EQ(Packed(PlanOf("benchmark://mm-v0/mm1024_1024_1024",
                          "split_4,down,swap_down,down,split_48,swap_up,swap_up")),
            22U * 48 * 1024 * 4);
}

TEST(PackPanels, LeavesRowsThatLieCloseTogether) {
  EXPECT_EQ(Packed(PlanOf("benchmark://mm-v0/mm1024_224_1024", kTiled)), 0U);
}

TEST(PackPanels, LeavesWhatIsReadAFewTimesOnly) {
  EXPECT_EQ(Packed(PlanOf("benchmark://mm-v0/mm28_1024_1024", kTiled)), 0U);
  EXPECT_GT(Packed(PlanOf("benchmark://mm-v0/mm32_1024_1024", kTiled)), 0U);
}

TEST(PackPanels, LeavesRowsThatNoBlockRunsDown) {
  // n is innermost and not split: each row is read from end to end.
  EXPECT_EQ(Packed(PlanOf("benchmark://mm-v0/mm1024_1024_1024", "swap_down")), 0U);
}

TEST(PackPanels, KeepsWithinTheLimitOfMemory) {
  const KernelPlan plan = PlanOf("benchmark://mm-v0/mm1024_1024_1024", kTiled);
  const std::uint64_t tensors = 3U * 1024 * 1024 * 4;
  const std::uint64_t with_panels = tensors + plan.scratch_bytes + 1024U * 1024 * 4;
  EXPECT_EQ(Packed(plan, with_panels - 1), 0U);
  EXPECT_GT(Packed(plan, with_panels), 0U);
}

TEST(PackPanels, CopiesOnAllThreads) {
  const auto tree = looptree::Annotate(TreeOf("benchmark://mm-v0/mm1024_1024_1024", kTiled), 0,
                                       looptree::Annotation::kThread)
                        .value();
  KernelPlan plan = PlanOf(tree, 2);
  ASSERT_EQ(plan.threads, 2U);
  const std::size_t before = plan.steps.size();
  PackPanels(plan, kShape, kNoLimit);
  ASSERT_EQ(plan.steps.size(), before + 1);
  EXPECT_TRUE(plan.loops[std::get<LoopStep>(plan.steps.front().what).loop].parallel);
}

}  // namespace
}  // namespace loopfleet::worker
