#pragma once
// LogRateLimit: of lines that a stranger can cause without end, one a second is logged; the next
// one says how many it stands for. One thread's.

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/clock.h"

namespace loopfleet::coordinator {

class LogRateLimit {
 public:
  // Counts a line. How many are to be told of now, itself included; none: not now.
  std::optional<std::uint64_t> Count(Instant now) {
    ++untold_;
    if (now < next_) return std::nullopt;
    next_ = now + kPause;
    return std::exchange(untold_, 0);
  }

 private:
  static constexpr std::chrono::seconds kPause{1};

  std::uint64_t untold_ = 0;
  Instant next_ = Instant::min();
};

}  // namespace loopfleet::coordinator
