#include "worker/child_programs.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

TEST(KernelCoresTest, AreOneProcessorOfEachCoreUnlessMoreAreAskedFor) {
  // Four cores with two threads each; the last one times kernels.
  const monitoring::CorePlan cores{.slot_core = 7, .others = {0, 1, 2, 4, 5, 6}, .other_cores = 3};
  EXPECT_EQ(KernelCores({}, cores), (std::vector<int>{7, 0, 1, 2}));
  EXPECT_EQ(KernelCores({.max_threads = 2}, cores), (std::vector<int>{7, 0}));
  EXPECT_EQ(KernelCores({.max_threads = 6}, cores), (std::vector<int>{7, 0, 1, 2, 4, 5}));
  EXPECT_EQ(KernelCores({.max_threads = 64}, cores), (std::vector<int>{7, 0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(KernelCores({}, {.slot_core = 1, .others = {}}), (std::vector<int>{1}));
}

}  // namespace
}  // namespace loopfleet::worker
