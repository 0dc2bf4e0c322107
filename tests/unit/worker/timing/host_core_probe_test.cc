#include "worker/timing/host_core_probe.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "worker/isa/isa_support.h"

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

// Another thread that competes for the same core all the time.
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

// Runs on a thread of its own, so that other tests do not inherit the pinning.
void OnAThread(void (*work)()) { std::thread(work).join(); }

TEST(HostCoreProbe, KnowsEveryPreemptionAsTheSystemDoes) {
  OnAThread([] {
    StayOnThisCore();
    const Rival rival;
    const SystemStopwatch stopwatch;
    HostCoreProbe probe(*HostIsa().core_kernels, stopwatch, 1);
    const std::uint64_t first = AskedPreemptions();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (AskedPreemptions() < first + 20 && std::chrono::steady_clock::now() < end) {
      const std::uint64_t before = AskedPreemptions();
      const std::uint64_t told = probe.Preemptions();
      const std::uint64_t after = AskedPreemptions();
      ASSERT_GE(told, before);
      ASSERT_LE(told, after);
    }
    EXPECT_GE(AskedPreemptions(), first + 20) << "the rival never had the core";
  });
}

}  // namespace
}  // namespace loopfleet::worker
