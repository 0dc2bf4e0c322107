#include "worker/timing/awake_core.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "monitoring/host/core_plan.h"

namespace loopfleet::worker {
namespace {

using std::chrono::milliseconds;

// The thread of this process that keeps a core awake.
std::optional<pid_t> AwakeThread() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "awake-core") return std::stoi(task.path().filename());
  }
  return std::nullopt;
}

// Its processor time.
std::uint64_t WorkedNs(pid_t thread) {
  std::uint64_t ns = 0;
  std::ifstream("/proc/self/task/" + std::to_string(thread) + "/schedstat") >> ns;
  return ns;
}

// It may wait for long for a core that others want.
template <class Condition>
bool ComesTrue(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

class AwakeCoreTest : public testing::Test {
 protected:
  const int core_ = monitoring::AllowedProcessors().value().back();
};

TEST_F(AwakeCoreTest, WorksForItsTimeAfterEachRenewal) {
  AwakeCore awake(core_, milliseconds(20), core_kernels::kPortable);
  std::optional<pid_t> thread;
  ASSERT_TRUE(ComesTrue([&] { return (thread = AwakeThread()).has_value(); }));
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t before = WorkedNs(*thread);
    EXPECT_TRUE(ComesTrue([&] {
      awake.Renew();
      return WorkedNs(*thread) > before + 1'000'000;
    }));
    // Then it sleeps: its processor time stands still.
    EXPECT_TRUE(ComesTrue([&] {
      const std::uint64_t so_far = WorkedNs(*thread);
      std::this_thread::sleep_for(milliseconds(50));
      return WorkedNs(*thread) == so_far;
    }));
  }
}

TEST_F(AwakeCoreTest, GivesWayToEverythingElseOnItsCore) {
  const AwakeCore awake(core_, milliseconds(20), core_kernels::kPortable);
  EXPECT_TRUE(ComesTrue([&] {
    const auto thread = AwakeThread();
    return thread && ::sched_getscheduler(*thread) == SCHED_IDLE;
  }));
  EXPECT_TRUE(ComesTrue([&] {
    cpu_set_t cores;
    const auto thread = AwakeThread();
    return thread && ::sched_getaffinity(*thread, sizeof cores, &cores) == 0 &&
           CPU_COUNT(&cores) == 1 && CPU_ISSET(static_cast<std::size_t>(core_), &cores);
  }));
}

TEST_F(AwakeCoreTest, WithoutItsCoreItEnds) {
  constexpr int kNoSuchCore = CPU_SETSIZE - 1;
  AwakeCore awake(kNoSuchCore, milliseconds(20), core_kernels::kPortable);
  awake.Renew();
  EXPECT_TRUE(ComesTrue([] { return !AwakeThread(); }));
  awake.Renew();
}

TEST_F(AwakeCoreTest, WithoutATimeTheCoreMaySleep) {
  AwakeCore awake(core_, Nanos{0}, core_kernels::kPortable);
  awake.Renew();
  EXPECT_TRUE(ComesTrue([] { return !AwakeThread(); }));  // also that of an earlier test
}

}  // namespace
}  // namespace loopfleet::worker
