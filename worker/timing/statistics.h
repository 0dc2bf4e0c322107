#pragma once
// From samples to a Measurement: median with an order-statistic interval, minimum, mean, spread,
// grade. Over the accepted samples; all are kept.

#include <cstdint>
#include <span>
#include <vector>

#include "common/job/measurement.h"
#include "worker/timing/sampler.h"

namespace loopfleet::worker {

// The ranks (0-based, of the sorted samples) that enclose the median with at least 95 % confidence,
// whatever the distribution: the narrowest symmetric pair. With fewer than 6 samples no pair
// reaches that; then the smallest and the largest, which is 94 % for 5.
struct RankInterval {
  std::size_t low = 0;
  std::size_t high = 0;
};
RankInterval MedianInterval(std::size_t sample_count);  // sample_count >= 1

Grade GradeOf(double spread);

// At least one sample, all positive and finite.
Measurement Summarise(const Samples& samples);

}  // namespace loopfleet::worker
