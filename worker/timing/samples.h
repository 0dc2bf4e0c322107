#pragma once
// Samples: what one look at a kernel has timed. A value.

#include <cstdint>
#include <vector>

#include "common/job/measurement.h"

namespace loopfleet::worker {

enum class SamplingEnd : std::uint8_t {
  kDone,
  kCut,  // a run surely takes longer than cut_above_ns
};

struct Samples {
  SamplingEnd end = SamplingEnd::kDone;
  std::uint64_t iterations = 0;     // runs in each repetition
  std::vector<double> ns;           // wall time of one run, in the order they were taken
  std::vector<std::uint8_t> flags;  // SampleFlag bits, one for each
  // Throughput probes in cycles: the quickest of them, and the median of those beside contended
  // repetitions relative to a quiet core (1 where there are none).
  double probe_cycles = 0;
  double slowdown = 1;
  double clock_before_mhz = 0;  // 0: not known
  double clock_after_mhz = 0;
  friend bool operator==(const Samples&, const Samples&) = default;
};

// The time that the repetitions of these samples took.
inline double TotalNs(const Samples& samples) {
  double total = 0;
  for (const double ns : samples.ns) total += ns * static_cast<double>(samples.iterations);
  return total;
}

}  // namespace loopfleet::worker
