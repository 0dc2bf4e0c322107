#include "common/job/plausibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace loopfleet {
namespace {

Failure Impossible(double claimed, double peak, std::string_view unit) {
  constexpr double kGiga = 1e9;
  return {
      .code = FailureCode::kUnstableTiming,
      .message = fmt::format("the samples would mean {:.4g} {}, which is above what this device "
                             "was measured to do, {:.4g}; no figure can be given",
                             claimed / kGiga, unit, peak / kGiga)};
}

bool IsTime(double ns) { return std::isfinite(ns) && ns > 0; }

}  // namespace

std::optional<std::string> WhyNoMeasurement(const Measurement& m) {
  for (const double ns :
       {m.elapsed_ns, m.elapsed_low_ns, m.elapsed_high_ns, m.elapsed_min_ns, m.elapsed_mean_ns}) {
    if (!IsTime(ns)) return fmt::format("{} ns is no time", ns);
  }
  if (!std::isfinite(m.spread) || m.spread < 0) return fmt::format("{} is no spread", m.spread);
  if (m.elapsed_low_ns > m.elapsed_ns || m.elapsed_ns > m.elapsed_high_ns) {
    return fmt::format("the median {} ns is outside its interval [{}, {}]", m.elapsed_ns,
                       m.elapsed_low_ns, m.elapsed_high_ns);
  }
  for (const double mhz : {m.clock_before_mhz, m.clock_after_mhz}) {
    if (!IsPlausibleClock(mhz)) return fmt::format("{} MHz is no clock", mhz);
  }
  if (m.thinned) return "its samples were thinned, which only the database does";
  if (m.samples_ns.empty() || !std::ranges::all_of(m.samples_ns, IsTime)) {
    return "a sample is no time, or there are none";
  }
  if (m.sample_flags.size() != m.samples_ns.size()) {
    return fmt::format("{} flags for {} samples", m.sample_flags.size(), m.samples_ns.size());
  }
  return std::nullopt;
}

std::optional<Failure> CheckPlausible(const Measurement& measurement, const WorkDone& work,
                                      const HardwareFacts& hardware) {
  constexpr double kNsPerSecond = 1e9;
  const DevicePeaks& peaks = hardware.peaks;
  const double flop_peak = peaks.flop_per_second * work.threads;
  const double flop_rate =
      static_cast<double>(work.flop_count) / measurement.elapsed_ns * kNsPerSecond;
  if (flop_peak > 0 && flop_rate > flop_peak * kFlopMargin) {
    return Impossible(flop_rate, flop_peak, "GFLOP/s");
  }
  // Output beyond the last cache has reached memory by the end of the run. The cache is taken as
  // twice its stated size, because a host may state only a part of it.
  constexpr std::uint64_t kCaches = 2;
  const double byte_peak =
      std::max(peaks.read_bytes_per_second, peaks.triad_bytes_per_second) * work.threads;
  const std::uint64_t cache =
      hardware.device == DeviceKind::kCuda ? hardware.l2_bytes : hardware.l3_bytes;
  if (cache == 0 || byte_peak <= 0) return std::nullopt;
  if (work.output_bytes <= kCaches * cache) return std::nullopt;
  const auto written = static_cast<double>(work.output_bytes - kCaches * cache);
  const double byte_rate = written / measurement.elapsed_ns * kNsPerSecond;
  if (byte_rate > byte_peak * kBandwidthMargin) return Impossible(byte_rate, byte_peak, "GB/s");
  return std::nullopt;
}

std::optional<Failure> CheckGrade(const Measurement& measurement, Grade min_grade) {
  if (measurement.grade <= min_grade) return std::nullopt;
  return Failure{.code = FailureCode::kUnstableTiming,
                 .message = fmt::format("the figure is of grade {}, and the job asks for {} at "
                                        "least: {:.4g} ns, between {:.4g} and {:.4g}",
                                        EnumName(measurement.grade), EnumName(min_grade),
                                        measurement.elapsed_ns, measurement.elapsed_low_ns,
                                        measurement.elapsed_high_ns)};
}

}  // namespace loopfleet
