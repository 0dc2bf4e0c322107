#include "worker/processes/slot_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "monitoring/host/core_plan.h"

namespace loopfleet::worker {
namespace {

constexpr std::chrono::seconds kLong{60};

class SlotLockTest : public testing::Test {
 protected:
  static SlotLock Open() {
    auto lock = SlotLock::Open(monitoring::AllowedProcessors().value().back());
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

// Each asks for the lock again at once; neither may starve.
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

}  // namespace
}  // namespace loopfleet::worker
