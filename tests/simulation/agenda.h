#pragma once
// Agenda: virtual time. Actions run in order of their time, then of their scheduling. Time moves
// only when Step runs an action.

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace loopfleet::simulation {

class Agenda {
 public:
  using Action = std::function<void()>;

  Instant now() const { return now_; }
  void At(Instant when, Action action) {
    entries_.push({when < now_ ? now_ : when, ++asked_, std::move(action)});
  }
  void After(Nanos delay, Action action) { At(now_ + delay, std::move(action)); }

  // Runs the next action; false if there is none.
  bool Step() {
    if (entries_.empty()) return false;
    Entry next = std::move(const_cast<Entry&>(entries_.top()));  // popped at once
    entries_.pop();
    now_ = next.when;
    next.action();
    return true;
  }

 private:
  struct Entry {
    Instant when;
    std::uint64_t order = 0;
    Action action;
    bool operator<(const Entry& other) const {  // the queue's top is its largest
      return when != other.when ? when > other.when : order > other.order;
    }
  };
  Instant now_{std::chrono::seconds(1000)};
  std::uint64_t asked_ = 0;
  std::priority_queue<Entry> entries_;
};

}  // namespace loopfleet::simulation
