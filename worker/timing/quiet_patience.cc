#include "worker/timing/quiet_patience.h"

#include <algorithm>
#include <cstddef>

namespace loopfleet::worker {
namespace {

// What a quiet moment is worth, in time of the core: the last millisecond of a wait is taken where
// it finds quiet in one case of ten. That is twice what a job costs that never finds any.
constexpr double kQuietIsWorthNs = 10e6;
// Of the waits before, so much is forgotten with each one.
constexpr double kForgotten = 1.0 / 64;
// Before anything was seen: as if so many waits had ended in quiet at their end, evenly spread over
// the bounds. A quarter of what is remembered in all, so hopelessness has to be shown.
constexpr double kHope = 16;

}  // namespace

QuietPatience::QuietPatience() {
  for (std::size_t i = 0; i < kBoundsNs.size(); ++i) {
    worth_ns_[i] = kHope * static_cast<double>(kBoundsNs[i]);
  }
}

std::uint64_t QuietPatience::Next(std::uint64_t longest_ns) {
  if (looks_++ % kExploresOneIn == 0) return longest_ns;
  const std::uint64_t bound = bound_ns();
  return bound == kLongestNs ? longest_ns : std::min(longest_ns, bound);
}

void QuietPatience::Observe(const QuietWait& wait) {
  if (wait.bound_ns < kLongestNs) return;  // either it took none, or there is no telling
  for (std::size_t i = 0; i < kBoundsNs.size(); ++i) {
    const bool has_helped = wait.has_helped && wait.took_ns <= kBoundsNs[i];
    // A wait in which the system ran something else takes longer than it may.
    const std::uint64_t took =
        kBoundsNs[i] == kLongestNs ? wait.took_ns : std::min(wait.took_ns, kBoundsNs[i]);
    worth_ns_[i] *= 1 - kForgotten;
    worth_ns_[i] += (has_helped ? kQuietIsWorthNs : 0) - static_cast<double>(took);
  }
}

std::uint64_t QuietPatience::bound_ns() const {
  const auto best = std::ranges::max_element(worth_ns_);  // of equals, the longest
  return kBoundsNs[static_cast<std::size_t>(best - worth_ns_.begin())];
}

}  // namespace loopfleet::worker
