#include "monitoring/host/core_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/monitoring/host/fake_host.h"

namespace loopfleet::monitoring {
namespace {

class CorePlanTest : public testing::Test {
 protected:
  void Core(const std::vector<int>& threads, const std::string& list) {
    for (const int thread : threads) {
      host_.Sys(fmt::format("devices/system/cpu/cpu{}/topology/thread_siblings_list", thread),
                list);
    }
  }
  FakeHost host_;
};

TEST_F(CorePlanTest, TheTimingCoreIsSetAsideWithAllItsThreads) {
  Core({0, 2}, "0,2");
  Core({1, 3}, "1,3");
  EXPECT_EQ(PlanCores({0, 1, 2, 3}, host_.files()), (CorePlan{3, {0, 2}, 1}));
  EXPECT_EQ(PlanCores({0, 1, 2, 3}, host_.files(), 0), (CorePlan{0, {1, 3}, 1}));
  EXPECT_EQ(PlanCores({0, 3}, host_.files()), (CorePlan{3, {0}, 1}));
}

TEST_F(CorePlanTest, OneCoreLeavesNothingForTheOthers) {
  Core({0, 1}, "0-1");
  EXPECT_EQ(PlanCores({0, 1}, host_.files()), (CorePlan{1, {}, 0}));
  EXPECT_EQ(PlanCores({1}, host_.files()), (CorePlan{1, {}, 0}));
  EXPECT_EQ(PlanCores({}, host_.files()), (CorePlan{0, {}, 0}));
}

// Two parts of a kernel on two threads of one core would take as long as run in sequence.
TEST_F(CorePlanTest, OneThreadOfEachCoreComesFirst) {
  Core({0, 1}, "0-1");
  Core({2, 3}, "2-3");
  Core({4, 5}, "4-5");
  Core({6, 7}, "6-7");
  EXPECT_EQ(PlanCores({0, 1, 2, 3, 4, 5, 6, 7}, host_.files()),
            (CorePlan{7, {0, 2, 4, 1, 3, 5}, 3}));
  EXPECT_EQ(PlanCores({1, 2, 3, 7}, host_.files()), (CorePlan{7, {1, 2, 3}, 2}));
}

TEST_F(CorePlanTest, WhereTheHostSaysNothingEachProcessorIsACore) {
  EXPECT_EQ(PlanCores({0, 1, 2}, host_.files()), (CorePlan{2, {0, 1}, 2}));
}

TEST(AllowedProcessorsTest, ThisThreadRunsOnSome) {
  const std::vector<int> allowed = AllowedProcessors().value();
  ASSERT_FALSE(allowed.empty());
  EXPECT_TRUE(std::ranges::is_sorted(allowed));
}

}  // namespace
}  // namespace loopfleet::monitoring
