#include "common/job/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace loopfleet {

Grade GradeOf(double spread) {
  constexpr double kGradeBSpread = 0.05;
  if (spread <= kGradeASpread) return Grade::kA;
  if (spread <= kGradeBSpread) return Grade::kB;
  return spread <= kMaxSpread ? Grade::kC : Grade::kD;
}

std::vector<std::string> ThrottleReasons(std::uint64_t reasons) {
  constexpr std::pair<std::uint64_t, std::string_view> kNames[] = {
      {0x01, "idle"},
      {0x02, "clocks set by an application"},
      {0x04, "software power cap"},
      {0x08, "hardware slowdown"},
      {0x10, "sync boost"},
      {0x20, "software thermal slowdown"},
      {0x40, "hardware thermal slowdown"},
      {0x80, "power brake"},
      {0x100, "display clocks"},
  };
  std::vector<std::string> names;
  for (const auto& [bit, name] : kNames) {
    if ((reasons & bit) != 0) names.emplace_back(name);
    reasons &= ~bit;
  }
  if (reasons != 0) names.push_back(fmt::format("{:#x}", reasons));
  return names;
}

std::size_t SampleCount(const Measurement& measurement) {
  return measurement.thinned ? measurement.thinned->samples_before : measurement.samples_ns.size();
}

std::size_t AcceptedSamples(const Measurement& measurement) {
  if (measurement.thinned) return measurement.thinned->accepted_before;
  return static_cast<std::size_t>(std::ranges::count(measurement.sample_flags, kSampleAccepted));
}

std::vector<double> UsedSamples(const Measurement& measurement) {
  const auto flag_of = [&](std::size_t i) { return measurement.sample_flags[i]; };
  const bool is_accepted = AcceptedSamples(measurement) >= kLeastAccepted;
  std::vector<double> counted;
  counted.reserve(measurement.samples_ns.size());
  for (std::size_t i = 0; i < measurement.samples_ns.size(); ++i) {
    const bool counts =
        is_accepted ? flag_of(i) == kSampleAccepted : (flag_of(i) & kSamplePreempted) == 0;
    if (counts) counted.push_back(measurement.samples_ns[i]);
  }
  if (counted.empty()) counted = measurement.samples_ns;
  std::ranges::sort(counted);
  return counted;
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
