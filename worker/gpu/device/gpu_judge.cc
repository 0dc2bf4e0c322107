#include "worker/gpu/device/gpu_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "worker/evaluation/profile_lines.h"
#include "worker/timing/measurement_rounds.h"

namespace loopfleet::worker {

namespace {

// What the device's clock leaves open of a run's time: samples that end in the same tick agree, and
// do not show it.
void AddClockError(Measurement& measurement) {
  const double error_ns = kEventTickNs / static_cast<double>(measurement.iterations_per_sample);
  double& low = measurement.elapsed_low_ns;
  low = std::max(low - error_ns, low / 2);  // above 0, as a time is
  measurement.elapsed_high_ns += error_ns;
  measurement.spread = (measurement.elapsed_high_ns - low) / (2 * measurement.elapsed_ns);
  measurement.grade = std::max(measurement.grade, GradeOf(measurement.spread));
}

}  // namespace

SamplingPolicy GpuPolicyFor(const JobSpec& spec) {
  constexpr std::uint64_t kNsPerMs = 1'000'000;
  SamplingPolicy policy{.min_samples = 5,
                        .min_repetition_ns = 2 * kNsPerMs,
                        .precision = 0.0075,
                        .least_timed_ns = 0,
                        .budget_ns = 100 * kNsPerMs,
                        .cache = spec.cache,
                        .cut_above_ns = spec.cut_above_ns};
  if (spec.precision > 0) {  // up to the most samples, within one second
    policy.precision = spec.precision;
    policy.most_samples = policy.max_samples;
    policy.budget_ns = 1000 * kNsPerMs;
  }
  if (spec.budget_ms > 0) {
    policy.budget_ns = static_cast<std::uint64_t>(spec.budget_ms * static_cast<double>(kNsPerMs));
  }
  policy.patience_ns = 5 * policy.budget_ns;  // a throttled device needs time to cool
  return policy;
}

std::expected<Measurement, Failure> JudgeSamples(const DeviceSamples& samples, const JobSpec& spec,
                                                 const WorkDone& work,
                                                 const HardwareFacts& hardware, DeviceTruth truth) {
  if (samples.samples.end == SamplingEnd::kCut) {
    return std::unexpected(Failure{
        .code = FailureCode::kCut,
        .message = fmt::format("one run surely takes longer than the bound of {} ns; timing "
                               "stopped after {} samples, and no time is given",
                               spec.cut_above_ns, samples.samples.ns.size())});
  }
  // Times are not rescaled: a GPU chooses its clock by the kernel's load, so the clock is part of
  // the kernel's performance.
  constexpr double kNoReferenceClock = 0;
  // One round is enough: nothing else runs on the device, or was_shared tells that it did.
  MeasurementRounds rounds(spec, {.fewest = 1});
  rounds.Add(samples.samples);
  Measurement measurement = rounds.Summarise(kNoReferenceClock);
  if (std::optional<Failure> failure = CheckPlausible(measurement, work, hardware)) {
    return std::unexpected(*std::move(failure));
  }
  measurement.device = samples.state;
  AddClockError(measurement);
  if (samples.was_shared || truth == DeviceTruth::kFake) {
    measurement.grade = std::max(measurement.grade, Grade::kC);
  }
  if (auto too_coarse = CheckGrade(measurement, spec.min_grade)) {
    return std::unexpected(*std::move(too_coarse));
  }
  return measurement;
}

std::expected<Profile, Failure> ProfileOfLaunches(std::span<const looptree::TreeRef> roots,
                                                  const LaunchTimes& times) {
  // Sites as of a copy of a CPU's kernel: the whole, then the roots. Ticks are nanoseconds.
  std::vector<ProbeSite> sites = {{.place = {.part = ProfilePart::kOutside}}};
  std::vector<std::size_t> site_of;  // by launch
  for (const looptree::TreeRef root : roots) {
    if (site_of.empty() || sites.back().place.ref != root) {
      sites.push_back({.place = {.ref = root}, .is_root = true});
    }
    site_of.push_back(sites.size() - 1);
  }
  std::vector<ProbeReading> readings;
  for (const std::vector<double>& turn : times.turns) {
    if (turn.size() != roots.size()) {
      return std::unexpected(
          Failure{.code = FailureCode::kCompileError,
                  .message = "the compiler does not say which root each launch runs for"});
    }
    ProbeReading reading(sites.size(), ProbeCount{.entries = times.runs});
    for (std::size_t launch = 0; launch < turn.size(); ++launch) {
      const auto ns = static_cast<std::uint64_t>(std::llround(turn[launch]));
      reading[0].ticks += ns;
      reading[site_of[launch]].ticks += ns;
    }
    readings.push_back(std::move(reading));
  }
  Profile profile{.level = ProfileLevel::kRoots,
                  .overhead = times.marked_ns / times.plain_ns - 1,
                  .run_ns = times.plain_ns,
                  .lines = LinesOfReadings(sites, {}, readings)};
  KeepMost(profile);
  return profile;
}

}  // namespace loopfleet::worker
