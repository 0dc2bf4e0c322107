#include "common/job/measurement.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace loopfleet {

std::string_view GradeName(Grade grade) {
  switch (grade) {
    case Grade::kA: return "A";
    case Grade::kB: return "B";
    case Grade::kC: return "C";
  }
  LF_CHECK(false, "grade {}", static_cast<int>(grade));
}

std::size_t AcceptedSamples(const Measurement& measurement) {
  return static_cast<std::size_t>(std::ranges::count(measurement.sample_flags, kSampleAccepted));
}

double ClockMhz(const Measurement& measurement) {
  if (measurement.clock_before_mhz <= 0 || measurement.clock_after_mhz <= 0) return 0;
  return (measurement.clock_before_mhz + measurement.clock_after_mhz) / 2;
}

bool ClockMoved(const Measurement& measurement) {
  constexpr double kTolerated = 0.01;
  if (ClockMhz(measurement) <= 0) return false;
  return std::abs(measurement.clock_after_mhz / measurement.clock_before_mhz - 1) > kTolerated;
}

}  // namespace loopfleet
