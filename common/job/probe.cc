#include "common/job/probe.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

namespace loopfleet {
namespace {

std::unexpected<Failure> Fail(FailureCode code, std::string message) {
  return std::unexpected(Failure{.code = code, .message = std::move(message)});
}

}  // namespace

std::expected<ResolvedTask, Failure> ResolveProbe(const JobSpec& spec) {
  const auto& uri = std::get<looptree::BenchmarkUri>(spec.source).text;
  if (uri != kPeaksProbe) {
    return Fail(FailureCode::kInvalidBenchmark,
                fmt::format("there is no probe '{}'; nearest: '{}'", uri, kPeaksProbe));
  }
  if (!spec.actions.empty()) {
    Failure failure{.code = FailureCode::kInvalidAction, .message = "a probe takes no actions"};
    failure.action_index = 0;
    return std::unexpected(std::move(failure));
  }
  if (spec.device == DeviceRequest::kCuda) {
    return Fail(FailureCode::kMalformed,
                "field 'device' is cuda; a probe measures a CPU's core: cpu, or leave it out");
  }
  return ResolvedTask{.subject = ContentKey::Of(uri), .placement = Placement::kCpu};
}

std::optional<std::string> WhyNoProbe(const JobSpec&, const Observed& observed) {
  for (const auto& [name, value] : observed.values) {
    if (!std::holds_alternative<double>(value)) {
      return fmt::format("its value '{}' is not a number", name);
    }
  }
  return std::nullopt;
}

}  // namespace loopfleet
