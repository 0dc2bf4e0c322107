#pragma once
// From samples to a figure: the median with an interval, and what grade its width is worth.

#include <cstddef>
#include <expected>
#include <span>
#include <vector>

#include "common/job/failure.h"
#include "common/job/measurement.h"
#include "worker/timing/samples.h"

namespace loopfleet::worker {

// The ranks (0-based, of the sorted samples) that enclose the median with at least 95 % confidence,
// whatever the distribution: the narrowest symmetric pair. With fewer than 6 samples no pair
// reaches that; then the smallest and the largest, which is 94 % for 5.
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
// The interval round the median. Of 2 to 4 samples it is the range, stretched round its middle as
// Student's t of so few would be for samples of a normal distribution: 13, 2.9, 1.5 times. At least
// one sample, all above 0.
Interval MedianWithInterval(std::vector<double> samples);

// How many times longer contention is taken to make a run, at most.
inline constexpr double kMostContention = 10;
// ns of one run in the quickest repetition that was neither preempted nor throttled, contended or
// not; 0: there are fewer than two of them.
double QuickestUnpreempted(const Samples& samples);

// The middle one, of an even number the upper; 0 of none.
double MedianOf(std::vector<double> values);

// A clock in MHz, divided by this, is in cycles per nanosecond.
inline constexpr double kMhzPerPerNs = 1e3;

}  // namespace loopfleet::worker
