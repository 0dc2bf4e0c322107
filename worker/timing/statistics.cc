#include "worker/timing/statistics.h"

#include <algorithm>
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

Grade GradeOf(double spread) {
  if (spread <= 0.01) return Grade::kA;
  if (spread <= 0.05) return Grade::kB;
  return Grade::kC;
}

Measurement Summarise(const Samples& samples) {
  std::vector<double> sorted = samples.ns;
  std::sort(sorted.begin(), sorted.end());
  const RankInterval interval = MedianInterval(sorted.size());
  Measurement measurement;
  measurement.elapsed_ns = MedianOfSorted(sorted);
  measurement.elapsed_low_ns = sorted[interval.low];
  measurement.elapsed_high_ns = sorted[interval.high];
  measurement.elapsed_min_ns = sorted.front();
  measurement.elapsed_mean_ns =
      std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  measurement.spread =
      (measurement.elapsed_high_ns - measurement.elapsed_low_ns) / (2 * measurement.elapsed_ns);
  measurement.grade = GradeOf(measurement.spread);
  measurement.iterations_per_sample = samples.iterations;
  measurement.samples_ns = samples.ns;
  measurement.sample_flags.assign(samples.ns.size(), kSampleAccepted);
  return measurement;
}

}  // namespace loopfleet::worker
