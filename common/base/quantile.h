#pragma once
// Quantile: a quantile of the values: 0.5 is the median, 0.99 the 99th percentile, 1 the maximum.
// NaN if `values` is empty.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace loopfleet {

inline double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::nan("");
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

}  // namespace loopfleet
