#pragma once
// Statistics of samples: the median and its confidence interval.

#include <cstddef>
#include <expected>
#include <span>
#include <vector>

#include "common/job/failure.h"
#include "common/job/measurement.h"
#include "worker/timing/samples.h"

namespace loopfleet::worker {

// The ranks (0-based, of the sorted samples) that enclose the median with at least 95 % confidence,
// whatever the distribution: the narrowest symmetric pair. Fewer than 6 samples cannot reach that:
// then the smallest and the largest, which is 94 % for 5.
struct RankInterval {
  std::size_t low = 0;
  std::size_t high = 0;
};
RankInterval MedianInterval(std::size_t sample_count);  // sample_count >= 1

struct Interval {
  double median = 0;
  double low = 0;
  double high = 0;
  double spread() const { return (high - low) / (2 * median); }
};
// The median and its interval. For 2 to 4 samples the interval is the range, stretched about its
// middle by 13, 2.9 or 1.5 times, as Student's t requires for so few samples of a normal
// distribution. At least one sample, all above 0.
Interval MedianWithInterval(std::vector<double> samples);

// The factor by which contention is assumed to lengthen a run, at most.
inline constexpr double kMostContention = 10;
// Nanoseconds of one run in the quickest repetition that was neither preempted nor throttled,
// contended or not. 0: fewer than two such repetitions.
double QuickestUnpreempted(const Samples& samples);

// The middle value; the upper one of an even number; 0 if empty.
double MedianOf(std::vector<double> values);

// A clock in MHz, divided by this, is in cycles per nanosecond.
inline constexpr double kMhzPerPerNs = 1e3;

}  // namespace loopfleet::worker
