#include "worker/timing/host_core_probe.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "worker/hardware.h"
#include "worker/timing/switch_mark.h"

namespace loopfleet::worker {
namespace {

std::uint64_t AskedPreemptions() {
  rusage usage{};
  EXPECT_EQ(::getrusage(RUSAGE_THREAD, &usage), 0);
  return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

void StayOnThisCore() {
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &core);
  ASSERT_EQ(::sched_setaffinity(0, sizeof core, &core), 0);
}

// Another thread that wants the same core all the time.
class Rival {
 public:
  Rival()
      : thread_([this] {
          while (!stopping_) {
          }
        }) {}
  ~Rival() {
    stopping_ = true;
    thread_.join();
  }
  Rival(const Rival&) = delete;
  Rival& operator=(const Rival&) = delete;

 private:
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

// On a thread of its own, so that the core is kept for no other test.
void OnAThread(void (*work)()) { std::thread(work).join(); }

TEST(HostCoreProbe, KnowsEveryPreemptionAsTheSystemDoes) {
  OnAThread([] {
    StayOnThisCore();
    const Rival rival;
    const SystemStopwatch stopwatch;
    HostCoreProbe probe(CoreKernelsFor(HostIsa()), stopwatch, 1);
    const std::uint64_t first = AskedPreemptions();
    std::uint64_t most_behind = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (AskedPreemptions() < first + 20 && std::chrono::steady_clock::now() < end) {
      const std::uint64_t before = AskedPreemptions();
      const std::uint64_t told = probe.Preemptions();
      const std::uint64_t after = AskedPreemptions();
      ASSERT_LE(told, after);
      // Between them it may have lost its core in the call that asks, which some kernels do not
      // mark.
      most_behind = std::max(most_behind, before - std::min(told, before));
    }
    EXPECT_GE(AskedPreemptions(), first + 20) << "the rival never had the core";
    EXPECT_LE(most_behind, 1U);
  });
}

TEST(SwitchMark, FallsWhenTheThreadLosesItsCore) {
  OnAThread([] {
    SwitchMark::Set();
    if (!SwitchMark::IsStanding()) GTEST_SKIP() << "nobody can tell here";
    StayOnThisCore();
    const Rival rival;
    SwitchMark::Set();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (SwitchMark::IsStanding() && std::chrono::steady_clock::now() < end) {
    }
    EXPECT_FALSE(SwitchMark::IsStanding());
  });
}

TEST(SwitchMark, StandsOverASystemCall) {
  OnAThread([] {
    SwitchMark::Set();
    if (!SwitchMark::IsStanding()) GTEST_SKIP() << "nobody can tell here";
    int stood = 0;
    for (int i = 0; i < 1'000; ++i) {
      SwitchMark::Set();
      AskedPreemptions();
      stood += SwitchMark::IsStanding() ? 1 : 0;
    }
    EXPECT_GT(stood, 500);
  });
}

TEST(SwitchMark, EachThreadHasItsOwn) {
  OnAThread([] {
    SwitchMark::Set();
    std::thread([] { EXPECT_FALSE(SwitchMark::IsStanding()); }).join();
  });
}

}  // namespace
}  // namespace loopfleet::worker
