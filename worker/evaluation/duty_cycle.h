#pragma once
// DutyCycle: what the timing slot's time goes on. At every moment it is exactly one activity, so
// the parts add up to the time since construction, to the nanosecond: nothing is left over, and
// nothing counts twice. Safe from any thread.

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
  // `on_spent` is told of each piece of time once, in order, under a lock: it must be quick.
  using OnSpent = std::function<void(Activity, Nanos)>;
  DutyCycle(const Clock& clock, OnSpent on_spent);

  // Preparing threads: a job enters a stage, and leaves it when the step ends.
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

  // How many jobs are here, in whatever state.
  void SetHeld(std::size_t jobs);

  // The timing thread: what it is doing from now on; none: it waits for something to be prepared.
  void SlotDoes(std::optional<Activity> activity);
  // A kernel came off the slot: what was spent on kMeasure since the one before was its.
  void KernelCameOff();
  // What came of that one. If nothing did, its time was lost (but for what was told of meanwhile,
  // see Settle: that stays).
  enum class Worth : std::uint8_t { kFigure, kNothing };
  void KernelWasJudged(Worth worth);

  // Tells of the time that has passed until now: for whoever is about to read the sums.
  void Settle();

 private:
  Activity Current() const;
  void Pass();  // the time until now was spent on Current()
  void Tell(Activity activity, Nanos spent);

  const Clock& clock_;
  const OnSpent on_spent_;
  std::mutex mutex_;                    // guards what follows
  Instant until_;                       // what came before is accounted for
  std::array<std::size_t, 2> steps_{};  // jobs in each stage
  std::size_t held_ = 0;
  std::optional<Activity> slot_;
  // Of kMeasure, not told yet, since it may come to nothing: of the kernel on the slot, and of the
  // one that is being judged.
  Nanos on_kernel_{0};
  Nanos undecided_{0};
};

}  // namespace loopfleet::worker
