#pragma once
// LogRateLimit: limits log lines that a peer can cause to one a second. Each line logged states how
// many it stands for. Used by one thread.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/clock.h"

namespace loopfleet::coordinator {

class LogRateLimit {
 public:
  // `at_once`: lines that may follow each other without a pause, after as many seconds without one.
  explicit LogRateLimit(int at_once = 1) : ahead_(kPause * (at_once - 1)) {}

  // Counts a line. Returns how many lines to report now, this one included; nullopt: log nothing
  // now.
  std::optional<std::uint64_t> Count(Instant now) {
    ++unreported_;
    if (now < next_) return std::nullopt;
    next_ = std::max(next_, now - ahead_) + kPause;
    return std::exchange(unreported_, 0);
  }

 private:
  static constexpr std::chrono::seconds kPause{1};

  std::chrono::seconds ahead_;
  std::uint64_t unreported_ = 0;
  Instant next_ = Instant::min();
};

}  // namespace loopfleet::coordinator
