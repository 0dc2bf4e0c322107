#pragma once
// Samples: what one round timed. A value.

#include <cstdint>
#include <vector>

#include "common/job/measurement.h"

namespace loopfleet::worker {

enum class SamplingEnd : std::uint8_t {
  kDone,
  kCut,  // one run certainly takes longer than cut_above_ns
};

struct Samples {
  SamplingEnd end = SamplingEnd::kDone;
  std::uint64_t iterations = 0;     // per repetition
  std::vector<double> ns;           // wall time of one run, per repetition, in order
  std::vector<std::uint8_t> flags;  // SampleFlag bits, per repetition
  double probe_cycles = 0;          // of the quickest throughput probe
  // The median probe beside contended repetitions, relative to a quiet core; 1: none contended.
  double slowdown = 1;
  double clock_before_mhz = 0;  // 0: not known
  double clock_after_mhz = 0;
  // From before the first repetition to after the last, with what was done between them.
  std::uint64_t spent_ns = 0;
  friend bool operator==(const Samples&, const Samples&) = default;
};

// The total time of the repetitions.
inline double TotalNs(const Samples& samples) {
  double total = 0;
  for (const double ns : samples.ns) total += ns * static_cast<double>(samples.iterations);
  return total;
}

inline bool ClockMoved(const Samples& samples) {
  return loopfleet::ClockMoved(
      {.clock_before_mhz = samples.clock_before_mhz, .clock_after_mhz = samples.clock_after_mhz});
}

}  // namespace loopfleet::worker
