#include "worker/timing/clock_reading.h"

#include <algorithm>

namespace loopfleet::worker {
namespace {

// Of the quicker one. Clocks of hosts tick in steps of 10 ns, 0.25 % of a chain.
constexpr double kSame = 0.996;
// A chain that gives the last reading, within this, was not interrupted. (A quicker one may be: the
// clock may have risen by more.)
constexpr double kReached = 0.998;
constexpr double kNotAbove = 1.004;

}  // namespace

void ClockReading::Add(double mhz) {
  const double slower = std::min(mhz, quickest_mhz_);
  quickest_mhz_ = std::max(mhz, quickest_mhz_);
  is_confirmed_ = slower >= kSame * quickest_mhz_ ||
                  (quickest_mhz_ >= kReached * last_mhz_ && quickest_mhz_ <= kNotAbove * last_mhz_);
  ++chains_;
}

}  // namespace loopfleet::worker
