#include "worker/timing/timing_message.h"

#include <algorithm>
#include <cmath>

#include "common/wire/bounds.h"

namespace loopfleet::worker {
namespace {

constexpr std::uint64_t kMaxGroups = 1'000;  // of probes in a DeviceReading
constexpr std::ptrdiff_t kLeastToCut = 2;    // samples, accepted or contended

bool IsAmount(double value) { return std::isfinite(value) && value >= 0; }
bool IsAboveZero(double value) { return std::isfinite(value) && value > 0; }

void PutNumbers(ByteWriter& writer, const std::vector<double>& numbers) {
  writer.Put(std::uint64_t{numbers.size()});
  for (const double number : numbers) writer.Put(number);
}

std::vector<double> GetNumbers(ByteReader& reader, std::uint64_t most) {
  std::vector<double> numbers(reader.GetCount(most));
  for (double& number : numbers) number = reader.Get<double>();
  return numbers;
}

}  // namespace

void Put(ByteWriter& writer, const SamplingPolicy& policy) {
  writer.Put(policy.min_samples);
  writer.Put(policy.most_samples);
  writer.Put(policy.min_repetition_ns);
  writer.Put(policy.precision);
  writer.Put(policy.least_timed_ns);
  writer.Put(policy.budget_ns);
  writer.Put(policy.patience_ns);
  writer.Put(policy.quiet_wait_ns);
  writer.Put(policy.give_up_after);
  writer.Put(policy.max_iterations);
  writer.Put(policy.max_samples);
  writer.Put(policy.iterations);
  writer.Put(policy.estimated_run_ns);
  writer.Put(policy.cache);
  writer.Put(policy.cut_above_ns);
  writer.Put(policy.reference_mhz);
  writer.Put(policy.quiet_cycles);
  writer.Put(policy.probe_steps);
  writer.Put(policy.evict_bytes);
  writer.Put(policy.threads);
}

SamplingPolicy GetPolicy(ByteReader& reader) {
  SamplingPolicy policy;
  policy.min_samples = reader.Get<std::uint32_t>();
  policy.most_samples = reader.Get<std::uint32_t>();
  policy.min_repetition_ns = reader.Get<std::uint64_t>();
  policy.precision = reader.Get<double>();
  policy.least_timed_ns = reader.Get<std::uint64_t>();
  policy.budget_ns = reader.Get<std::uint64_t>();
  policy.patience_ns = reader.Get<std::uint64_t>();
  policy.quiet_wait_ns = reader.Get<std::uint64_t>();
  policy.give_up_after = reader.Get<std::uint32_t>();
  policy.max_iterations = reader.Get<std::uint64_t>();
  policy.max_samples = reader.Get<std::uint32_t>();
  policy.iterations = reader.Get<std::uint64_t>();
  policy.estimated_run_ns = reader.Get<double>();
  policy.cache = reader.GetEnum(CacheState::kCold);
  policy.cut_above_ns = reader.Get<std::uint64_t>();
  policy.reference_mhz = reader.Get<double>();
  policy.quiet_cycles = reader.Get<double>();
  policy.probe_steps = reader.Get<std::uint64_t>();
  policy.evict_bytes = reader.Get<std::uint64_t>();
  policy.threads = reader.Get<std::uint32_t>();
  return policy;
}

void Put(ByteWriter& writer, const Samples& samples) {
  writer.Put(samples.end);
  writer.Put(samples.iterations);
  PutNumbers(writer, samples.ns);
  for (const std::uint8_t flags : samples.flags) writer.Put(flags);
  writer.Put(samples.probe_cycles);
  writer.Put(samples.slowdown);
  writer.Put(samples.clock_before_mhz);
  writer.Put(samples.clock_after_mhz);
}

std::optional<Samples> GetSamples(ByteReader& reader) {
  Samples samples;
  samples.end = reader.GetEnum(SamplingEnd::kCut);
  samples.iterations = reader.Get<std::uint64_t>();
  samples.ns = GetNumbers(reader, wire::kMaxSamples);
  samples.flags.resize(samples.ns.size());
  for (std::uint8_t& flags : samples.flags) flags = reader.Get<std::uint8_t>();
  samples.probe_cycles = reader.Get<double>();
  samples.slowdown = reader.Get<double>();
  samples.clock_before_mhz = reader.Get<double>();
  samples.clock_after_mhz = reader.Get<double>();
  const bool can_be =
      reader.ok() && samples.iterations > 0 && !samples.ns.empty() &&
      std::ranges::all_of(samples.ns, IsAboveZero) &&
      std::ranges::all_of(samples.flags,
                          [](auto flag) {
                            return flag <= (kSampleContended | kSamplePreempted | kSampleThrottled);
                          }) &&
      IsAmount(samples.probe_cycles) && IsAmount(samples.slowdown) && samples.slowdown >= 1 &&
      IsAmount(samples.clock_before_mhz) && IsAmount(samples.clock_after_mhz) &&
      (samples.end != SamplingEnd::kCut || std::ranges::count_if(samples.flags, [](auto flag) {
                                             return (flag & ~kSampleContended) == 0;
                                           }) >= kLeastToCut);
  if (!can_be) return std::nullopt;
  return samples;
}

void Put(ByteWriter& writer, const DeviceReading& reading) {
  writer.Put(reading.probe_steps);
  writer.Put(reading.flop_per_cycle);
  writer.Put(reading.canary_flop);
  writer.Put(reading.clock_mhz);
  PutNumbers(writer, reading.probe_cycles);
  writer.Put(reading.least_probe_cycles);
  writer.Put(reading.read_bytes_per_second);
  writer.Put(reading.triad_bytes_per_second);
  PutNumbers(writer, reading.load_ns);
}

std::optional<DeviceReading> GetDeviceReading(ByteReader& reader) {
  DeviceReading reading;
  reading.probe_steps = reader.Get<std::uint64_t>();
  reading.flop_per_cycle = reader.Get<double>();
  reading.canary_flop = reader.Get<std::uint64_t>();
  reading.clock_mhz = reader.Get<double>();
  reading.probe_cycles = GetNumbers(reader, kMaxGroups);
  reading.least_probe_cycles = reader.Get<double>();
  reading.read_bytes_per_second = reader.Get<double>();
  reading.triad_bytes_per_second = reader.Get<double>();
  reading.load_ns = GetNumbers(reader, kMaxGroups);
  const bool can_be =
      reader.ok() && reading.probe_steps > 0 && IsAmount(reading.clock_mhz) &&
      IsAmount(reading.flop_per_cycle) && std::ranges::all_of(reading.probe_cycles, IsAboveZero) &&
      IsAmount(reading.least_probe_cycles) && IsAmount(reading.read_bytes_per_second) &&
      IsAmount(reading.triad_bytes_per_second) && std::ranges::all_of(reading.load_ns, IsAmount);
  if (!can_be) return std::nullopt;
  return reading;
}

void Put(ByteWriter& writer, const CanaryReading& reading) {
  for (const double took : reading.took) writer.Put(took);
}

std::optional<CanaryReading> GetCanaryReading(ByteReader& reader) {
  CanaryReading reading;
  for (double& took : reading.took) took = reader.Get<double>();
  if (!reader.ok() || !std::ranges::all_of(reading.took, IsAboveZero)) return std::nullopt;
  return reading;
}

}  // namespace loopfleet::worker
