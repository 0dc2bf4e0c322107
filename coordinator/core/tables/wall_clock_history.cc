#include "coordinator/core/tables/wall_clock_history.h"

#include <algorithm>
#include <chrono>

#include "common/base/check.h"

namespace loopfleet::coordinator {

void WallClockHistory::Note(Moment now) {
  const Nanos ahead = now.wall.time_since_epoch() - now.instant.time_since_epoch();
  if (!paces_.empty() && std::chrono::abs(ahead - paces_.back().ahead) < kJump) return;
  paces_.push_back({.from = now.instant, .ahead = ahead});
  if (paces_.size() > kMostJumps) paces_.pop_front();
}

WallTime WallClockHistory::EarliestSince(Instant then) const {
  LF_CHECK(!paces_.empty(), "nothing was noted yet");
  Nanos least = paces_.back().ahead;
  for (auto pace = paces_.rbegin(); pace != paces_.rend(); ++pace) {
    least = std::min(least, pace->ahead);
    if (pace->from <= then) break;
  }
  return WallTime(then.time_since_epoch() + least);
}

}  // namespace loopfleet::coordinator
