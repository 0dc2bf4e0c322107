#include "worker/slot_lock.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace loopfleet::worker {
namespace {

constexpr std::chrono::seconds kLong{60};

class SlotLockTest : public testing::Test {
 protected:
  static SlotLock Open() {
    auto lock = SlotLock::Open(PlanCores().value().slot_core);
    EXPECT_TRUE(lock) << lock.error().message;
    return *std::move(lock);
  }
  const std::atomic<bool> never_{false};
};

TEST_F(SlotLockTest, OneHolderAtATime) {
  SlotLock one = Open();
  SlotLock two = Open();
  ASSERT_TRUE(one.Acquire(kLong, never_));
  EXPECT_FALSE(two.Acquire(std::chrono::milliseconds(1), never_));
  one.Release();
  ASSERT_TRUE(two.Acquire(kLong, never_));
  EXPECT_FALSE(one.Acquire(std::chrono::milliseconds(1), never_));
  two.Release();
}

TEST_F(SlotLockTest, WaitingEndsWhenToldTo) {
  SlotLock one = Open();
  SlotLock two = Open();
  ASSERT_TRUE(one.Acquire(kLong, never_));
  const std::atomic<bool> stop{true};
  EXPECT_FALSE(two.Acquire(std::chrono::hours(1), stop));
  one.Release();
}

TEST_F(SlotLockTest, AHolderThatEndsFreesIt) {
  SlotLock one = Open();
  {
    SlotLock gone = Open();
    ASSERT_TRUE(gone.Acquire(kLong, never_));
  }
  EXPECT_TRUE(one.Acquire(kLong, never_));
}

// Each comes back for the lock at once; neither may be shut out.
TEST_F(SlotLockTest, TwoThatAlwaysWantItBothGetIt) {
  std::atomic<int> counts[2] = {0, 0};
  std::atomic<int> inside{0};
  std::atomic<bool> overlapped{false};
  std::atomic<bool> stop{false};
  const auto work = [&](int who) {
    SlotLock lock = Open();
    while (!stop) {
      if (!lock.Acquire(kLong, stop)) continue;
      if (inside.fetch_add(1) != 0) overlapped = true;
      ++counts[who];
      inside.fetch_sub(1);
      lock.Release();
      if (counts[0] >= 50 && counts[1] >= 50) stop = true;
    }
  };
  std::thread one(work, 0);
  std::thread two(work, 1);
  one.join();
  two.join();
  EXPECT_FALSE(overlapped);
  EXPECT_GE(counts[0], 50);
  EXPECT_GE(counts[1], 50);
}

TEST(CorePlanTest, TheTimingCoreIsSetAside) {
  const CorePlan plan = PlanCores().value();
  if (!plan.others) GTEST_SKIP() << "only one core here";
  EXPECT_FALSE(CPU_ISSET(static_cast<std::size_t>(plan.slot_core), &*plan.others));
  EXPECT_GE(CPU_COUNT(&*plan.others), 1);
}

// A /sys that says which processors the slot's core has.
class CoreThreadsTest : public testing::Test {
 protected:
  void SetUp() override {
    slot_core_ = PlanCores().value().slot_core;
    if (slot_core_ == 0) GTEST_SKIP() << "this process may use one processor only";
    sys_ = std::filesystem::path(testing::TempDir()) / fmt::format("loopfleet_sys_{}", ::getpid());
  }
  void TearDown() override { std::filesystem::remove_all(sys_); }
  CorePlan PlanWith(const std::string& threads) {
    const auto topology = sys_ / fmt::format("devices/system/cpu/cpu{}/topology", slot_core_);
    std::filesystem::create_directories(topology);
    std::ofstream(topology / "thread_siblings_list") << threads << "\n";
    return PlanCores(sys_).value();
  }
  int slot_core_ = 0;
  std::filesystem::path sys_;
};

TEST_F(CoreThreadsTest, NothingOfOursRunsOnTheOtherThreadsOfTheSlotsCore) {
  const CorePlan alone = PlanWith(std::to_string(slot_core_));
  ASSERT_TRUE(alone.others);
  EXPECT_FALSE(CPU_ISSET(static_cast<std::size_t>(slot_core_), &*alone.others));
  const int before = CPU_COUNT(&*alone.others);
  int sibling = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(sibling), &*alone.others)) ++sibling;
  const CorePlan pair = PlanWith(fmt::format("{},{}", sibling, slot_core_));
  if (before == 1) {
    EXPECT_FALSE(pair.others);  // a core and its sibling is all there is
  } else {
    ASSERT_TRUE(pair.others);
    EXPECT_FALSE(CPU_ISSET(static_cast<std::size_t>(sibling), &*pair.others));
    EXPECT_EQ(CPU_COUNT(&*pair.others), before - 1);
  }
  EXPECT_FALSE(PlanWith(fmt::format("0-{}", slot_core_)).others);
}

TEST_F(CoreThreadsTest, WhereTheHostSaysNothingTheCoreIsOneProcessor) {
  EXPECT_EQ(PlanCores(sys_).value().slot_core, slot_core_);
  EXPECT_TRUE(PlanCores(sys_).value().others);
}

}  // namespace
}  // namespace loopfleet::worker
