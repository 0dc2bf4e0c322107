#pragma once
// DutyCycle: accounts for the timing slot's time by activity. Exactly one activity is current at
// every moment, so the parts add up to the time since construction, to the nanosecond. Safe from
// any thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>

#include "common/base/clock.h"
#include "worker/timing/slot_time.h"

namespace loopfleet::worker {

class DutyCycle {
 public:
  // `on_spent` receives each span of time once, in order, under a lock, so it must be quick.
  using OnSpent = std::function<void(Activity, Nanos)>;
  DutyCycle(const Clock& clock, OnSpent on_spent);

  // Preparing threads: a job is in a stage while a Step exists.
  enum class Stage : std::uint8_t { kCompile, kVerify };
  class Step {
   public:
    Step(DutyCycle& duty, Stage stage);
    ~Step();
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    DutyCycle& duty_;
    const Stage stage_;
  };

  // The number of leases held, in any state.
  void SetHeld(std::size_t jobs);

  // The timing thread: its activity from now on; nullopt: it waits for a prepared job.
  void SlotDoes(std::optional<Activity> activity);
  // A kernel left the slot: the kMeasure time since the previous one was spent on it.
  void KernelCameOff();
  // The result of that kernel. Time spent on a kernel without a figure counts as lost, except for
  // what Settle has already reported.
  enum class Worth : std::uint8_t { kFigure, kNothing };
  void KernelWasJudged(Worth worth);

  // Reports the time passed until now; call before reading the sums.
  void Settle();

 private:
  Activity Current() const;
  void Pass();  // charges the time until now to Current()
  void Tell(Activity activity, Nanos spent);

  const Clock& clock_;
  const OnSpent on_spent_;
  std::mutex mutex_;                    // guards the members below
  Instant until_;                       // time before this is accounted for
  std::array<std::size_t, 2> steps_{};  // jobs in each stage
  std::size_t held_ = 0;
  std::optional<Activity> slot_;
  // kMeasure time not reported yet, as it may turn out lost: of the kernel on the slot, and of the
  // one being judged.
  Nanos on_kernel_{0};
  Nanos undecided_{0};
};

}  // namespace loopfleet::worker
