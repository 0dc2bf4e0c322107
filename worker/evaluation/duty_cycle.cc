#include "worker/evaluation/duty_cycle.h"

#include <utility>

#include "common/base/check.h"

namespace loopfleet::worker {

DutyCycle::DutyCycle(const Clock& clock, OnSpent on_spent)
    : clock_(clock), on_spent_(std::move(on_spent)), until_(clock.Now()) {}

DutyCycle::Step::Step(DutyCycle& duty, Stage stage) : duty_(duty), stage_(stage) {
  std::lock_guard lock(duty_.mutex_);
  duty_.Pass();
  ++duty_.steps_[static_cast<std::size_t>(stage_)];
}

DutyCycle::Step::~Step() {
  std::lock_guard lock(duty_.mutex_);
  duty_.Pass();
  --duty_.steps_[static_cast<std::size_t>(stage_)];
}

void DutyCycle::SetHeld(std::size_t jobs) {
  std::lock_guard lock(mutex_);
  if ((jobs == 0) != (held_ == 0)) Pass();
  held_ = jobs;
}

void DutyCycle::SlotDoes(std::optional<Activity> activity) {
  std::lock_guard lock(mutex_);
  if (activity == slot_) return;
  Pass();
  slot_ = activity;
}

void DutyCycle::KernelCameOff() {
  std::lock_guard lock(mutex_);
  Pass();
  undecided_ += std::exchange(on_kernel_, Nanos{0});
}

void DutyCycle::KernelWasJudged(Worth worth) {
  std::lock_guard lock(mutex_);
  Tell(worth == Worth::kFigure ? Activity::kMeasure : Activity::kLost,
       std::exchange(undecided_, Nanos{0}));
}

void DutyCycle::Settle() {
  std::lock_guard lock(mutex_);
  Pass();
  Tell(Activity::kMeasure,
       std::exchange(undecided_, Nanos{0}) + std::exchange(on_kernel_, Nanos{0}));
}

Activity DutyCycle::Current() const {
  if (slot_) return *slot_;
  if (steps_[static_cast<std::size_t>(Stage::kVerify)] > 0) return Activity::kVerify;
  if (steps_[static_cast<std::size_t>(Stage::kCompile)] > 0) return Activity::kCompile;
  return held_ > 0 ? Activity::kWait : Activity::kIdle;
}

void DutyCycle::Pass() {
  const Instant now = clock_.Now();
  const Nanos passed = now - std::exchange(until_, now);
  if (Current() == Activity::kMeasure) {
    on_kernel_ += passed;
  } else {
    Tell(Current(), passed);
  }
}

void DutyCycle::Tell(Activity activity, Nanos spent) {
  if (spent > Nanos{0}) on_spent_(activity, spent);
}

}  // namespace loopfleet::worker
