#include "worker/timing_slot.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/unit/worker/children_fixture.h"

namespace loopfleet::worker {
namespace {

class TimingSlotTest : public ChildrenFixture {
 protected:
  static SlotLock Lock() { return SlotLock::Open(PlanCores().value().slot_core).value(); }
  Result<DeviceReading> Measure(Nanos patience, bool is_told_to_end = false) {
    ExecutorProcess executor(*nursery_, {.run_limit = kPatience}, Listener());
    SlotLock lock = Lock();
    return MeasureDeviceAlone(
        executor, lock, HardwareFacts{.l3_bytes = 1 << 20},
        {.patience = patience, .is_told_to_end = [=] { return is_told_to_end; }});
  }
  const std::atomic<bool> never_{false};
};

// Beside a kernel of another worker its peaks would be too low, and right figures refused.
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

}  // namespace
}  // namespace loopfleet::worker
