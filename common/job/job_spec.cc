#include "common/job/job_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"

namespace loopfleet {

std::optional<std::string> ValidateLabel(std::string_view label) {
  if (label.empty()) return "a label has at least one character";
  if (label.find(',') != std::string_view::npos) return "a label cannot contain a comma";
  return std::nullopt;
}

std::optional<Failure> ValidateSpec(const JobSpec& spec) {
  const auto senseless = [](std::string_view field, const std::string& value, std::string allowed) {
    return Failure{.code = FailureCode::kMalformed,
                   .message = fmt::format("field '{}' is {}; {}", field, value, allowed)};
  };
  if (spec.threads < 1 || spec.threads > kMostThreads) {
    return senseless("threads", fmt::format("{}", spec.threads),
                     fmt::format("from 1 to {}", kMostThreads));
  }
  if (spec.precision != 0 && (spec.precision < kMinPrecision || spec.precision > kMaxPrecision)) {
    return senseless(
        "precision", fmt::format("{}", spec.precision),
        fmt::format("from {} to {}, or 0 for the default", kMinPrecision, kMaxPrecision));
  }
  if (spec.budget_ms != 0 && (spec.budget_ms < kLeastBudgetMs || spec.budget_ms > kMostBudgetMs)) {
    return senseless(
        "budget_ms", fmt::format("{}", spec.budget_ms),
        fmt::format("from {} to {}, or 0 for the default", kLeastBudgetMs, kMostBudgetMs));
  }
  if (spec.priority < kLeastPriority || spec.priority > kMostPriority) {
    return senseless(
        "priority", fmt::format("{}", spec.priority),
        fmt::format("from {} to {}, higher first; nearest: {}", kLeastPriority, kMostPriority,
                    std::clamp(spec.priority, kLeastPriority, kMostPriority)));
  }
  for (const std::string& label : spec.labels) {
    if (auto why = ValidateLabel(label)) {
      return senseless("labels", fmt::format("invalid label '{}'", label), *std::move(why));
    }
  }
  if (spec.deadline_s != 0 &&
      !(spec.deadline_s >= kShortestDeadlineS && spec.deadline_s <= kLongestDeadlineS)) {
    return senseless(
        "deadline_s", fmt::format("{}", spec.deadline_s),
        fmt::format("from {} to {}, or 0 for none", kShortestDeadlineS, kLongestDeadlineS));
  }
  if (spec.max_age_s < 0) {
    return senseless("max_age_s", fmt::format("{}", spec.max_age_s), "0 is any age");
  }
  return std::nullopt;
}

Placement PlacementOf(DeviceRequest wish, looptree::Target target) {
  switch (wish) {
    case DeviceRequest::kByBenchmark:
      return target == looptree::Target::kCuda ? Placement::kCuda : Placement::kCpu;
    case DeviceRequest::kCpu: return Placement::kCpu;
    case DeviceRequest::kCuda: return Placement::kCuda;
    case DeviceRequest::kAny: return Placement::kAny;
  }
  LF_CHECK(false, "device wish {}", static_cast<int>(wish));
}

std::expected<Placement, Failure> PlaceJob(DeviceRequest wish, looptree::Target target,
                                           std::uint64_t flop_count) {
  const Placement placement = PlacementOf(wish, target);
  const DeviceKind strongest = placement == Placement::kCpu ? DeviceKind::kCpu : DeviceKind::kCuda;
  if (flop_count > MostFlops(strongest)) {
    return std::unexpected(Failure{
        .code = FailureCode::kLimitFlops,
        .message = fmt::format("one run is {} flop; outputs are verified, so a job on {} may "
                               "have {}",
                               flop_count, strongest == DeviceKind::kCpu ? "a CPU" : "a GPU",
                               MostFlops(strongest))});
  }
  const bool is_too_much = placement == Placement::kAny && flop_count > MostFlops(DeviceKind::kCpu);
  return is_too_much ? Placement::kCuda : placement;
}

}  // namespace loopfleet
