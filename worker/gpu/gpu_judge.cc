#include "worker/gpu/gpu_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "worker/timing/statistics.h"

namespace loopfleet::worker {

SamplingPolicy GpuPolicyFor(const JobSpec& spec) {
  SamplingPolicy policy = PolicyFor(spec);
  policy.least_samples = 5;
  policy.min_repetition_ns = 2'000'000;
  policy.least_timed_ns = 0;
  if (spec.budget_ms <= 0 && spec.precision <= 0) {
    constexpr std::uint64_t kBudgetNs = 100'000'000;
    policy.budget_ns = kBudgetNs;
  }
  // Heat takes a while to go.
  policy.patience_ns = std::max(policy.patience_ns, 5 * policy.budget_ns);
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
  // Stated as they are: a GPU sets its clock by what a kernel makes it do, which is the kernel's
  // own.
  constexpr double kNoReferenceClock = 0;
  LF_TRY(Measurement measurement, Summarise(samples.samples, kNoReferenceClock));
  if (std::optional<Failure> failure = WhyImpossible(measurement, work, hardware)) {
    return std::unexpected(*std::move(failure));
  }
  if (samples.was_shared || truth == DeviceTruth::kFake) measurement.grade = Grade::kC;
  return measurement;
}

}  // namespace loopfleet::worker
