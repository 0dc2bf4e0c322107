#include "worker/timing/host_slowdown.h"

#include <algorithm>

#include "common/base/quantile.h"

namespace loopfleet::worker {

void HostSlowdown::Observe(double slowdown) {
  constexpr double kShare = 0.95;
  slowdowns_[count_++ % kWindow] = slowdown;
  if (count_ < kLeast) return;
  const auto end = slowdowns_.begin() + static_cast<std::ptrdiff_t>(std::min(count_, kWindow));
  factor_ = std::min(Quantile({slowdowns_.begin(), end}, kShare), kMost);
}

}  // namespace loopfleet::worker
