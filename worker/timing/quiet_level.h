#pragma once
// QuietLevel: how many cycles a throughput probe takes when nothing else uses the core. In cycles,
// so a slower clock is not taken for contention. Outlives executor children. Belongs to one thread.

#include <array>
#include <limits>

namespace loopfleet::worker {

class QuietLevel {
 public:
  // The median of some probes that were taken together.
  void Observe(double probe_cycles);
  // The third smallest of all medians so far: a single one may be too small, for the clock may have
  // been misjudged. Never forgets: a core that has been contended for an hour is still contended.
  // 0 before there are three.
  double cycles() const;

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  std::array<double, 3> smallest_ = {kNone, kNone, kNone};  // ascending
};

}  // namespace loopfleet::worker
