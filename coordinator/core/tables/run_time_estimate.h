#pragma once
// RunTimeEstimate: how long a worker's or a client's next job will probably take, from those that
// finished lately. Decides how many jobs a worker is sent at once (rules/placement.h) and how much
// of its turn a client's job uses up (ready_queue.h).

#include "common/base/clock.h"

namespace loopfleet::coordinator {

class RunTimeEstimate {
 public:
  // A moving average over about the last kRemembered jobs.
  void Add(Nanos took) {
    constexpr int kRemembered = 8;
    value_ = value_ == Nanos{0} ? took : value_ + (took - value_) / kRemembered;
  }
  Nanos value() const { return value_; }  // 0: no job has finished yet

 private:
  Nanos value_{0};
};

}  // namespace loopfleet::coordinator
