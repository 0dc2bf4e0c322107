#pragma once
// WallClockHistory: how the wall clock was set over time. Stored rows have wall-clock timestamps,
// and the clock may be set forward or back, so finding the rows written since some moment takes its
// history. Part of the core's state: it reads no clock.

#include <cstddef>
#include <deque>

#include "common/base/clock.h"
#include "coordinator/core/contract/event.h"

namespace loopfleet::coordinator {

class WallClockHistory {
 public:
  void Note(Moment now);  // at every event; moments do not decrease
  // The earliest wall time with which a row written at `then` or later may be stamped: `then` by
  // the clock's furthest-behind setting since. Needs a Note; before the first one the clock is
  // taken to have been set as it was then.
  WallTime EarliestSince(Instant then) const;

 private:
  // Slewing is not a jump: at 500 ppm it makes this much in 200 s.
  static constexpr std::chrono::milliseconds kJump{100};
  static constexpr std::size_t kMostJumps = 64;  // the oldest is forgotten

  struct Pace {
    Instant from{};
    Nanos ahead{};  // the wall clock's time less the steady clock's
  };
  std::deque<Pace> paces_;  // by ascending `from`
};

}  // namespace loopfleet::coordinator
