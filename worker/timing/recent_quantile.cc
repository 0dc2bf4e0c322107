#include "worker/timing/recent_quantile.h"

#include <algorithm>

#include "common/base/quantile.h"

namespace loopfleet::worker {

void RecentQuantile::Observe(double value) {
  constexpr double kShare = 0.95;
  values_[count_++ % kWindow] = value;
  if (count_ < kLeast) return;
  const auto end = values_.begin() + static_cast<std::ptrdiff_t>(std::min(count_, kWindow));
  value_ = Quantile({values_.begin(), end}, kShare);
}

}  // namespace loopfleet::worker
