#include "worker/processes/timing_slot.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "monitoring/host/core_plan.h"
#include "tests/unit/worker/processes/children_fixture.h"
#include "tests/unit/worker/verification/workload_here.h"
#include "worker/verification/workload.h"

namespace loopfleet::worker {
namespace {

class TimingSlotTest : public ChildrenFixture {
 protected:
  static SlotLock Lock() {
    return SlotLock::Open(monitoring::AllowedProcessors().value().back()).value();
  }
  Result<DeviceReading> Measure(Nanos patience, bool should_stop = false) {
    ExecutorProcess executor(*fork_server_, {.run_limit = kPatience}, Listener());
    SlotLock lock = Lock();
    return MeasureDeviceAlone(executor, lock, HardwareFacts{.l3_bytes = 1 << 20},
                              {.patience = patience, .should_stop = [=] { return should_stop; }});
  }
  KernelCall Addition() {
    place_.emplace(code_->Take());
    constexpr std::int64_t kElements = 1024;
    const std::uint64_t count = kElements;
    const auto workload = MakeWorkload(AddOf(kElements).start, {42}, ComputeHere).value();
    return {.entry = place_->Write(FakeCode(kElements)).value(),
            .workload = workload,
            .arena = arenas_.Take(LayOut({&count, 1}, workload->layout.buffers.size())).value()};
  }

  const std::atomic<bool> never_{false};
  GuardedBufferPool arenas_{{}};
  std::optional<CodeArena::Place> place_;
};

// Beside a kernel of another worker the peaks would be too low, and correct figures would be
// refused.
TEST_F(TimingSlotTest, TheDeviceIsMeasuredAloneOrNotAtAll) {
  SlotLock other = Lock();
  ASSERT_TRUE(other.Acquire(kPatience, never_));
  const auto refused = Measure(std::chrono::milliseconds(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnavailable);
  EXPECT_NE(refused.error().message.find(other.path()), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(Measure(kPatience, true).error().kind, ErrorKind::kClosed);
  other.Release();
  const auto reading = Measure(kPatience);
  ASSERT_TRUE(reading) << reading.error().message;
  EXPECT_GT(reading->flop_per_cycle, 0);
}

// A busy worker asks for the core again right after its turn, so the core is never free.
TEST_F(TimingSlotTest, CanariesHaveTheirTurnBesideANeighbourThatAlwaysWantsTheCore) {
  ExecutorProcess executor(*fork_server_, {.run_limit = kPatience}, Listener());
  const SystemClock clock;
  TimingSlot slot({}, Lock(), {.kernels = executor, .canaries = executor, .profiler = executor},
                  clock);
  std::atomic<bool> stop{false};
  std::atomic<bool> is_busy{false};
  std::jthread neighbour([&] {
    for (SlotLock lock = Lock(); !stop;) {
      if (!lock.Acquire(kPatience, stop)) continue;
      is_busy = true;
      while (!stop && !lock.HasWaiters()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      is_busy = false;
      lock.Release();
    }
  });
  for (int i = 0; i < 10; ++i) {
    while (!is_busy) std::this_thread::yield();
    EXPECT_TRUE(slot.TakeCore());
    EXPECT_TRUE(slot.RunCanaries({}, 1'000));
  }
  stop = true;
}

TEST_F(TimingSlotTest, WhoIsToldToStopWaitsForTheCoreNoLonger) {
  SlotLock other = Lock();
  ASSERT_TRUE(other.Acquire(kPatience, never_));
  ExecutorProcess executor(*fork_server_, {.run_limit = kPatience}, Listener());
  const SystemClock clock;
  TimingSlot slot({}, Lock(), {.kernels = executor, .canaries = executor, .profiler = executor},
                  clock);
  slot.Stop();
  EXPECT_FALSE(slot.TakeCore());
}

// A drain, canaries and other workers wait for all that was queued.
TEST_F(TimingSlotTest, LongKernelsAreNotQueued) {
  const KernelCall call = Addition();
  ExecutorProcess executor(*fork_server_, {.run_limit = kPatience}, Listener());
  const SystemClock clock;
  TimingSlot slot({}, Lock(), {.kernels = executor, .canaries = executor, .profiler = executor},
                  clock);
  StageDurations stages;
  ASSERT_TRUE(slot.Begin(call, {}, std::chrono::seconds(3)));
  EXPECT_FALSE(slot.HasRoom());
  ASSERT_TRUE(slot.Finish(stages));
  EXPECT_TRUE(slot.HasRoom());
  int queued = 0;
  for (; slot.HasRoom(); ++queued) {
    ASSERT_TRUE(slot.Begin(call, {}, std::chrono::microseconds(100)));
  }
  EXPECT_EQ(queued, 12) << "short ones keep the core busy while this process is late";
  for (; queued > 0; --queued) ASSERT_TRUE(slot.Finish(stages));
  ASSERT_TRUE(slot.Begin(call, {.budget_ns = 100'000'000}, std::chrono::microseconds(100)));
  EXPECT_TRUE(slot.HasRoom()) << "the core does not wait for the next one";
  ASSERT_TRUE(slot.Begin(call, {}, std::chrono::microseconds(100)));
  EXPECT_FALSE(slot.HasRoom()) << "the first one's job asked for precision";
  for (int begun = 2; begun > 0; --begun) ASSERT_TRUE(slot.Finish(stages));
}

// On two cores, beside its compilers, the daemon wakes up milliseconds late.
TEST_F(TimingSlotTest, WhatIsFetchedLateWasNotMeasuredForLonger) {
  const KernelCall call = Addition();
  ExecutorProcess executor(*fork_server_, {.run_limit = kPatience}, Listener());
  const SystemClock clock;
  TimingSlot slot({}, Lock(), {.kernels = executor, .canaries = executor, .profiler = executor},
                  clock);
  const Instant begun = clock.Now();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(slot.Begin(call, {}, std::chrono::milliseconds(1)));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (int i = 0; i < 3; ++i) {
    StageDurations stages;
    const auto timed = slot.Finish(stages);
    ASSERT_TRUE(timed) << timed.error().message;
    const double took = TotalNs(timed->samples) + static_cast<double>(timed->outside.total_ns());
    EXPECT_NEAR(static_cast<double>(stages[Stage::kMeasure].count()), took, 2);
    EXPECT_LE(stages[Stage::kMeasure] + stages[Stage::kQueue], clock.Now() - begun);
  }
}

}  // namespace
}  // namespace loopfleet::worker
