#pragma once
// WallHistory: what the wall clock showed. It may be set forward or back at any time, and rows are
// stamped with it; so which rows were written since a moment is not known from that moment's time
// by the clock of now. A part of the core's state: it knows no clock.

#include <cstddef>
#include <deque>

#include "common/base/clock.h"
#include "coordinator/core/contract/event.h"

namespace loopfleet::coordinator {

class WallHistory {
 public:
  void Note(Moment now);  // at every event; moments do not go back
  // The earliest time at `then` or since, by whatever the wall clock showed: `then` itself, as
  // the clock was set when it was furthest behind. There was a Note; before the first one the clock
  // is taken to have been set as it was then.
  WallTime EarliestSince(Instant then) const;

 private:
  // Slewing is no jump: 500 ppm make this much in 200 s.
  static constexpr std::chrono::milliseconds kJump{100};
  static constexpr std::size_t kMostJumps = 64;  // the oldest is forgotten

  struct Pace {
    Instant from{};
    Nanos ahead{};  // the wall clock's time less the steady clock's
  };
  std::deque<Pace> paces_;  // by ascending `from`
};

}  // namespace loopfleet::coordinator
