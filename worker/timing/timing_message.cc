#include "worker/timing/timing_message.h"

#include <algorithm>

#include "common/wire/bounds.h"

namespace loopfleet::worker {
namespace {

constexpr std::uint64_t kMaxGroups = 1'000;  // of probes in a DeviceReading
constexpr std::ptrdiff_t kLeastToCut = 2;    // samples, accepted or contended

bool IsAboveZero(double value) { return std::isfinite(value) && value > 0; }

bool CanBe(const Samples& samples) {
  constexpr std::uint8_t kFlags = kSampleContended | kSamplePreempted | kSampleThrottled;
  return samples.iterations > 0 && !samples.ns.empty() &&
         samples.flags.size() == samples.ns.size() &&
         std::ranges::all_of(samples.ns, IsAboveZero) &&
         std::ranges::all_of(samples.flags, [](auto flag) { return flag <= kFlags; }) &&
         IsAmount(samples.probe_cycles) && IsAmount(samples.slowdown) && samples.slowdown >= 1 &&
         IsAmount(samples.clock_before_mhz) && IsAmount(samples.clock_after_mhz) &&
         (samples.end != SamplingEnd::kCut || std::ranges::count_if(samples.flags, [](auto flag) {
                                                return (flag & ~kSampleContended) == 0;
                                              }) >= kLeastToCut);
}

bool CanBe(const DeviceReading& reading) {
  return reading.probe_steps > 0 && IsAmount(reading.clock_mhz) &&
         IsAmount(reading.flop_per_cycle) &&
         std::ranges::all_of(reading.probe_cycles, IsAboveZero) &&
         IsAmount(reading.least_probe_cycles) && IsAmount(reading.read_bytes_per_second) &&
         IsAmount(reading.triad_bytes_per_second) && std::ranges::all_of(reading.load_ns, IsAmount);
}

}  // namespace

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, SamplingPolicy>& policy) {
  archive(policy.min_samples, policy.most_samples, policy.min_repetition_ns, policy.precision,
          policy.least_timed_ns, policy.budget_ns, policy.patience_ns, policy.quiet_wait_ns,
          policy.give_up_after, policy.max_iterations, policy.max_samples, policy.iterations,
          policy.estimated_run_ns);
  archive.Enum(policy.cache, CacheState::kCold);
  archive(policy.cut_above_ns, policy.reference_mhz, policy.quiet_cycles, policy.probe_steps,
          policy.evict_bytes, policy.threads, policy.vector_bytes);
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, Samples>& samples) {
  archive.Enum(samples.end, SamplingEnd::kCut);
  archive(samples.iterations);
  archive.List(samples.ns, wire::kMaxSamples);
  archive.List(samples.flags, wire::kMaxSamples);
  archive(samples.probe_cycles, samples.slowdown, samples.clock_before_mhz, samples.clock_after_mhz,
          samples.spent_ns);
  archive.Require([&] { return CanBe(samples); });
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, DeviceReading>& reading) {
  archive(reading.probe_steps, reading.flop_per_cycle, reading.canary_flop, reading.clock_mhz);
  archive.List(reading.probe_cycles, kMaxGroups);
  archive(reading.least_probe_cycles, reading.read_bytes_per_second,
          reading.triad_bytes_per_second);
  archive.List(reading.load_ns, kMaxGroups);
  archive.Require([&] { return CanBe(reading); });
}

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, CanaryReading>& reading) {
  archive(reading.took);
  archive.Require([&] { return std::ranges::all_of(reading.took, IsAboveZero); });
}

template void Fields<ByteWriter>(ByteWriter&, const SamplingPolicy&);
template void Fields<ByteReader>(ByteReader&, SamplingPolicy&);
template void Fields<ByteWriter>(ByteWriter&, const Samples&);
template void Fields<ByteReader>(ByteReader&, Samples&);
template void Fields<ByteWriter>(ByteWriter&, const DeviceReading&);
template void Fields<ByteReader>(ByteReader&, DeviceReading&);
template void Fields<ByteWriter>(ByteWriter&, const CanaryReading&);
template void Fields<ByteReader>(ByteReader&, CanaryReading&);

}  // namespace loopfleet::worker
