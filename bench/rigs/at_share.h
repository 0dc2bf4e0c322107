#pragma once
// AtShare: what so large a share of the values is no greater than: 0.5 the median, 0.99 the 99th
// percentile, 1 the largest. Not a number where there are none.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace loopfleet::bench {

inline double AtShare(std::vector<double> values, double share) {
  if (values.empty()) return std::nan("");
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

}  // namespace loopfleet::bench
