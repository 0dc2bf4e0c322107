#include "worker/timing/quiet_level.h"

#include <algorithm>
#include <cmath>

namespace loopfleet::worker {

void QuietLevel::Observe(double probe_cycles) {
  if (!std::isfinite(probe_cycles) || probe_cycles <= 0) return;
  block_[count_++] = probe_cycles;
  const bool is_first = !std::isfinite(best_);
  if (count_ < (is_first ? kLeast : kBlock)) return;
  std::array<double, kBlock> sorted = block_;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(count_);
  const auto low = sorted.begin() + static_cast<std::ptrdiff_t>(count_ / 8);
  std::nth_element(sorted.begin(), low, end);
  cycles_ = std::min(best_, *low);
  if (count_ < kBlock) return;
  best_ = cycles_;
  count_ = 0;
}

}  // namespace loopfleet::worker
