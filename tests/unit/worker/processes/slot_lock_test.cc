#include "worker/processes/slot_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
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

constexpr uid_t kNobody = 65534;

// Runs `body` as a user that owns nothing; needs root. True if it returned true.
template <class Body>
bool AsNobody(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool became = ::setgid(kNobody) == 0 && ::setuid(kNobody) == 0;
    ::_exit(became && body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class SlotLockDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(directory_);
    ::chmod(directory_.c_str(), 02770);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  const std::filesystem::path directory_ =
      std::filesystem::path("/tmp") / ("loopfleet_slots_" + std::to_string(::getpid()));
  const std::atomic<bool> never_{false};
};

TEST_F(SlotLockDirectoryTest, ExcludesOnItsOwnFilesWhateverTheUmask) {
  const mode_t before = ::umask(077);
  SlotLock one = SlotLock::Open(3, directory_).value();
  ::umask(before);
  SlotLock two = SlotLock::Open(3, directory_).value();
  SlotLock other_core = SlotLock::Open(2, directory_).value();
  EXPECT_EQ(one.path(), directory_ / "cpu3");
  EXPECT_FALSE(one.is_open_to_all());
  ASSERT_TRUE(one.Acquire(kLong, never_));
  EXPECT_FALSE(two.Acquire(std::chrono::milliseconds(1), never_));
  EXPECT_TRUE(other_core.Acquire(kLong, never_));
  struct stat status{};
  ASSERT_EQ(::stat(one.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
}

TEST_F(SlotLockDirectoryTest, AUserThatItDoesNotLetInCannotHoldTheLock) {
  if (::geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  const auto nobody_locks = [&] {
    return AsNobody([&] {
      auto lock = SlotLock::Open(0, directory_);
      return lock && lock->Acquire(std::chrono::milliseconds(1), never_);
    });
  };
  EXPECT_FALSE(nobody_locks());
  ASSERT_TRUE(SlotLock::Open(0, directory_));  // made the files
  EXPECT_FALSE(nobody_locks());
  std::filesystem::remove_all(directory_);
  EXPECT_TRUE(nobody_locks());  // in sysfs anyone can
}

TEST_F(SlotLockDirectoryTest, IsRefusedWhereEveryUserGetsIn) {
  ::chmod(directory_.c_str(), 01777);
  const auto lock = SlotLock::Open(0, directory_);
  ASSERT_FALSE(lock);
  EXPECT_NE(lock.error().message.find("chmod o="), std::string::npos) << lock.error().message;
}

}  // namespace
}  // namespace loopfleet::worker
