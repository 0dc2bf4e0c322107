#include "worker/timing/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "common/base/check.h"

namespace loopfleet::worker {
namespace {

double MedianOfSorted(std::span<const double> sorted) {
  const std::size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return (sorted[middle - 1] + sorted[middle]) / 2;
}

// The factor that stretches the range of so few samples to an interval of 95 %: Student's t /
// sqrt(n) standard deviations to each side; the range is 1.13, 1.69, 2.06 of them for 2, 3, 4
// samples of a normal distribution.
constexpr std::array<double, 5> kStretch = {1, 1, 12.7, 2.9, 1.5};

Interval IntervalOfSorted(std::span<const double> sorted) {
  const double median = MedianOfSorted(sorted);
  if (sorted.size() < kStretch.size()) {
    const double middle = (sorted.front() + sorted.back()) / 2;
    const double half = (sorted.back() - sorted.front()) / 2 * kStretch[sorted.size()];
    // The low end stays above 0, and the median is always inside.
    return {.median = median,
            .low = std::clamp(middle - half, sorted.front() / 2, median),
            .high = std::max(middle + half, median)};
  }
  const RankInterval ranks = MedianInterval(sorted.size());
  return {.median = median, .low = sorted[ranks.low], .high = sorted[ranks.high]};
}

}  // namespace

RankInterval MedianInterval(std::size_t sample_count) {
  LF_CHECK(sample_count >= 1, "no samples");
  // How many of n samples lie below the median is binomial(n, 1/2). Leaving out k at each end
  // misses the median with probability 2 * P(at most k of n).
  constexpr double kMissEachEnd = 0.025;
  const auto n = static_cast<double>(sample_count);
  double probability = std::pow(0.5, n);  // of exactly k below
  double tail = probability;              // of at most k below
  std::size_t left_out = 0;
  while (2 * (left_out + 1) < sample_count) {
    const auto next = static_cast<double>(left_out + 1);
    probability *= (n - next + 1) / next;
    if (tail + probability > kMissEachEnd) break;
    tail += probability;
    ++left_out;
  }
  return {.low = left_out, .high = sample_count - 1 - left_out};
}

Interval MedianWithInterval(std::vector<double> samples) {
  std::ranges::sort(samples);
  return IntervalOfSorted(samples);
}

double QuickestUnpreempted(const Samples& samples) {
  double quickest = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < samples.ns.size(); ++i) {
    if ((samples.flags[i] & ~kSampleContended) != 0) continue;
    quickest = count == 0 ? samples.ns[i] : std::min(quickest, samples.ns[i]);
    ++count;
  }
  return count >= 2 ? quickest : 0;
}

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace loopfleet::worker
