#include "worker/lowering/unroller.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

using looptree::Annotation;

// Loops 0, 1, 2 ..., each inside the one before, that ask for unrolling.
KernelPlan PlanOf(const std::vector<std::int64_t>& iterations) {
  KernelPlan plan;
  for (const std::int64_t count : iterations) {
    plan.loops.push_back({.step = 1, .extents = {count}, .annotation = Annotation::kUnroll});
  }
  return plan;
}

void Count(Unroller& unroller, int instructions) {
  for (int i = 0; i < instructions; ++i) unroller.CountInstruction();
}

TEST(Unroller, AllIterationsIfTheyFit) {
  const KernelPlan plan = PlanOf({32});
  Unroller unroller(plan);
  ASSERT_TRUE(unroller.IsNeeded());
  EXPECT_EQ(unroller.Copies(0, 32, 1), 1) << "not chosen yet";
  unroller.EnterIteration(0, 32);
  Count(unroller, 16);
  unroller.LeaveIteration();
  unroller.Choose({.loop = 512, .kernel = 512});
  EXPECT_EQ(unroller.Copies(0, 32, 1), 32);
  EXPECT_EQ(unroller.Copies(0, 8, 1), 8) << "where it has fewer";
  EXPECT_EQ(unroller.written().at(0).copies, 32);
}

TEST(Unroller, TheLargestPowerOfTwoThatFits) {
  struct Case {
    std::int64_t iterations;
    std::uint64_t loop, kernel;
    std::int64_t copies;
  };
  for (const Case& c : {Case{33, 512, 2048, 16},    // 16 copies, and one for the rest
                        Case{32, 511, 2048, 16},    // 32 would fill 512
                        Case{256, 512, 100, 4},     // the kernel is the limit
                        Case{256, 20, 2048, 1}}) {  // not even two
    const KernelPlan plan = PlanOf({c.iterations});
    Unroller unroller(plan);
    unroller.EnterIteration(0, c.iterations);
    Count(unroller, 16);
    unroller.LeaveIteration();
    unroller.Choose({.loop = c.loop, .kernel = c.kernel});
    EXPECT_EQ(unroller.Copies(0, c.iterations, 1), c.copies) << c.iterations;
  }
}

TEST(Unroller, InnermostLoopsComeFirst) {
  const KernelPlan plan = PlanOf({64, 8});
  Unroller unroller(plan);
  unroller.EnterIteration(0, 64);
  Count(unroller, 4);
  unroller.EnterIteration(1, 8);
  Count(unroller, 10);
  unroller.LeaveIteration();
  unroller.LeaveIteration();
  unroller.Choose({.loop = 400, .kernel = 2048});
  EXPECT_EQ(unroller.Copies(1, 8, 1), 8);   // 80
  EXPECT_EQ(unroller.Copies(0, 64, 1), 4);  // 4 * 84
}

TEST(Unroller, EveryPlaceOfALoopHasToFit) {
  const KernelPlan plan = PlanOf({64});
  Unroller unroller(plan);
  for (const int instructions : {2, 40}) {
    unroller.EnterIteration(0, 64);
    Count(unroller, instructions);
    unroller.LeaveIteration();
  }
  unroller.Choose({.loop = 512, .kernel = 2048});
  EXPECT_EQ(unroller.Copies(0, 64, 1), 8);
}

TEST(Unroller, NoLoopAsksForIt) {
  KernelPlan plan = PlanOf({64});
  plan.loops[0].annotation = Annotation::kNone;
  EXPECT_FALSE(Unroller(plan).IsNeeded());
  plan = PlanOf({1});
  EXPECT_FALSE(Unroller(plan).IsNeeded()) << "one iteration";
}

}  // namespace
}  // namespace loopfleet::worker
