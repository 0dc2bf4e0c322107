#include "worker/timing/repeatability.h"

#include <algorithm>
#include <vector>

#include "common/base/quantile.h"

namespace loopfleet::worker {

void Repeatability::Observe(double difference) {
  constexpr double kShare = 0.95;
  differences_[count_++ % kWindow] = difference;
  if (count_ < kLeast) return;
  const auto end = differences_.begin() + static_cast<std::ptrdiff_t>(std::min(count_, kWindow));
  within_ = Quantile({differences_.begin(), end}, kShare);
}

}  // namespace loopfleet::worker
