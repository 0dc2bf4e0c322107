#include "worker/timing/device_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace loopfleet::worker {
namespace {

Failure CutFailure(const JobSpec& spec, std::string_view stopped) {
  return {.code = FailureCode::kCut,
          .message = fmt::format(
              "one run surely takes longer than the bound of {} ns; {}, and no time is given",
              spec.cut_above_ns, stopped)};
}

}  // namespace

std::optional<Nanos> HopelessAfter(const JobSpec& spec) {
  constexpr double kLongNs = 5e6;  // so long that first uses of memory do not count
  constexpr double kEndlessNs = 1e18;
  constexpr double kSurely = 3;
  if (spec.cut_above_ns == 0) return std::nullopt;
  const double hopeless = kSurely * static_cast<double>(spec.cut_above_ns) * spec.threads;
  return Nanos(static_cast<std::int64_t>(std::clamp(hopeless, kLongNs, kEndlessNs)));
}

Failure CutUntimed(const JobSpec& spec) {
  return CutFailure(spec, fmt::format("the run to be verified was stopped after {:.4g} ns of "
                                      "processor time",
                                      static_cast<double>(HopelessAfter(spec)->count())));
}

DeviceHealth::DeviceHealth(const Options& options, const DeviceReading& reading,
                           HardwareFacts hardware)
    : options_(options),
      reading_(reading),
      hardware_(std::move(hardware)),
      canaries_(options.canaries) {
  for (const double cycles : reading.probe_cycles) quiet_.Observe(cycles);
  if (reading.flop_per_cycle > 0) {
    arithmetic_ =
        ContentionBaseline(static_cast<double>(reading.canary_flop) / reading.flop_per_cycle);
  }
  hardware_.peaks = PeaksOf(reading_, hardware_.clock_mhz);
}

void DeviceHealth::SetReferenceClock(double mhz) {
  std::lock_guard lock(mutex_);
  // The arithmetic peak scales with the clock.
  if (hardware_.clock_mhz > 0) hardware_.peaks.flop_per_second *= mhz / hardware_.clock_mhz;
  hardware_.clock_mhz = mhz;
}

HardwareFacts DeviceHealth::hardware() const {
  std::lock_guard lock(mutex_);
  return hardware_;
}

HardwareFacts DeviceHealth::WithObservedPeaks(HardwareFacts hardware) const {
  double& peak = hardware.peaks.flop_per_second;
  peak = std::max(peak, PeaksOf(reading_, hardware.clock_mhz).flop_per_second);
  return hardware;
}

SamplingPolicy DeviceHealth::PolicyFor(const MeasurementRounds& rounds, bool is_alone) const {
  SamplingPolicy policy = rounds.NextPolicy(is_alone);
  policy.probe_steps = reading_.probe_steps;
  policy.quiet_cycles = QuietCycles();
  std::lock_guard lock(mutex_);
  policy.reference_mhz = hardware_.clock_mhz;
  policy.evict_bytes = hardware_.l3_bytes;
  return policy;
}

double DeviceHealth::QuietCycles() const {
  return QuietCoreCycles(quiet_.cycles(), reading_.least_probe_cycles);
}

double DeviceHealth::moments_apart() const {
  std::lock_guard lock(mutex_);
  return moments_apart_.value();
}

bool DeviceHealth::HasSeenQuiet() const { return quiet_.cycles() <= QuietCycles(); }

double DeviceHealth::slowdown() const {
  std::lock_guard lock(mutex_);
  return slowdown_.value();
}

void DeviceHealth::Observe(const Samples& samples) {
  // A probe's cycles are its time at the clock before the round: too few if the clock has risen.
  if (!ClockMoved(samples)) quiet_.Observe(samples.probe_cycles);
  if (samples.slowdown <= 1 || samples.slowdown > kMostSlowdown) return;
  std::lock_guard lock(mutex_);
  slowdown_.Observe(samples.slowdown);
}

std::expected<Measurement, Failure> DeviceHealth::Judge(const MeasurementRounds& rounds,
                                                        const JobSpec& spec, const WorkDone& work,
                                                        const HardwareFacts& hardware) {
  if (rounds.IsCut())
    return std::unexpected(
        CutFailure(spec, fmt::format("timing stopped after {} samples", rounds.sample_count())));
  if (const auto apart = rounds.MomentsApart()) {
    std::lock_guard lock(mutex_);
    moments_apart_.Observe(*apart);
  }
  Measurement measurement = rounds.Summarise(hardware.clock_mhz);
  if (std::optional<Failure> failure =
          CheckPlausible(measurement, work, WithObservedPeaks(hardware))) {
    return std::unexpected(*std::move(failure));
  }
  return measurement;
}

void DeviceHealth::ObserveCanary(const std::optional<CanaryReading>& reading, Instant now) {
  next_canary_ = now + options_.canary_interval;
  if (!reading) return;
  arithmetic_.Observe(reading->took[static_cast<std::size_t>(Canary::kArithmetic)]);
  if (arithmetic_.cycles() > 0) {
    reading_.flop_per_cycle = static_cast<double>(reading_.canary_flop) / arithmetic_.cycles();
  }
  std::lock_guard lock(mutex_);
  canaries_.Observe(*reading, now);
}

CanaryHealth DeviceHealth::health() const {
  std::lock_guard lock(mutex_);
  return {.ratio = canaries_.ratio(),
          .drifting = canaries_.drifting(),
          .steady_until = canaries_.steady_until()};
}

}  // namespace loopfleet::worker
