#pragma once
// JobSteps: how many jobs ended, and failed, in each 5 seconds of the last 15 minutes. Belongs to
// the event loop; other threads get copies (fleet_snapshot.h).

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "common/base/clock.h"
#include "coordinator/shell/tally.h"

namespace loopfleet::coordinator {

class JobSteps {
 public:
  static constexpr std::chrono::seconds kStep{5};
  static constexpr std::size_t kSteps = 180;

  struct Step {
    std::uint64_t finished = 0;
    std::uint64_t judged = 0;  // Tally::judged
    std::uint64_t failed = 0;
  };

  void Add(const Tally& tally, Moment now);

  // Complete steps, oldest first, and the end of the last one.
  const std::deque<Step>& steps() const { return steps_; }
  WallTime end() const { return end_; }
  Step Last(std::chrono::seconds span) const;  // the sum of the last steps

 private:
  struct Begin {
    Instant at{};
    Tally tally;
  };
  std::deque<Step> steps_;
  WallTime end_{};
  std::optional<Begin> began_;
};

}  // namespace loopfleet::coordinator
