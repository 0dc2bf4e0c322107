#include "common/job/pass_job.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "common/base/result.h"
#include "common/llvm_passes/pass_sequence.h"

namespace loopfleet {
namespace {

std::unexpected<Failure> Fail(FailureCode code, std::string message) {
  return std::unexpected(Failure{.code = code, .message = std::move(message)});
}

// "-gvn" for "gvn", which a command line would take for an option. Raw texts stay.
std::string WithDash(const std::string& pass) {
  const bool is_one = pass.starts_with('-') || passes::CanonicalText(pass).has_value();
  return is_one || pass.empty() || pass.find_first_of("(<") != pass.npos ? pass : "-" + pass;
}

bool IsOfType(const ObservedValue& value, passes::ValueType type) {
  switch (type) {
    case passes::ValueType::kInteger: return std::holds_alternative<double>(value);
    case passes::ValueType::kBytes:
      return std::holds_alternative<std::string>(value) || std::holds_alternative<Blob>(value);
    case passes::ValueType::kIntegers:
    case passes::ValueType::kFloats: return std::holds_alternative<std::vector<double>>(value);
  }
  return false;
}

}  // namespace

std::expected<PassJob, Failure> PassJobOf(const JobSpec& spec) {
  if (!spec.actions.empty()) {
    Failure failure{.code = FailureCode::kInvalidAction,
                    .message = "actions are for loops; give what to run as 'passes'"};
    failure.action_index = 0;
    return std::unexpected(std::move(failure));
  }
  auto program = passes::ParseProgramUri(std::get<looptree::BenchmarkUri>(spec.source).text);
  if (!program) return Fail(FailureCode::kInvalidBenchmark, program.error().message);
  std::vector<std::string> sequence;
  for (const std::string& pass : spec.passes) sequence.push_back(WithDash(pass));
  auto texts = passes::CanonicalTexts(sequence);
  if (!texts) {
    return std::unexpected(Failure{.code = FailureCode::kInvalidAction,
                                   .message = std::move(texts.error().message),
                                   .action_index = texts.error().action_index});
  }
  PassJob job{.program = *std::move(program), .texts = *std::move(texts), .observations = {}};
  for (const std::string& name : spec.observe) {
    const auto observation = passes::ParseObservation(name);
    if (!observation) return Fail(FailureCode::kMalformed, observation.error().message);
    job.observations.push_back(*observation);
  }
  if (job.observations.empty()) {
    job.observations.push_back(passes::Observation::kIrInstructionCount);
  }
  return job;
}

std::expected<ResolvedTask, Failure> ResolvePassJob(const JobSpec& spec) {
  LF_TRY(const PassJob job, PassJobOf(spec));
  if (spec.device == DeviceRequest::kCuda) {
    return Fail(FailureCode::kMalformed,
                "field 'device' is cuda; passes run on a CPU: cpu, or leave it out");
  }
  // One line for each part: neither a text nor a name has a line break.
  std::string content = passes::ProgramKey(job.program);
  for (const std::string& text : job.texts) content += "\n" + text;
  for (const passes::Observation observation : job.observations) {
    const auto& info = passes::InfoOf(observation);
    content += fmt::format("\nobserve {} {}", info.name, info.revision);
  }
  return ResolvedTask{.subject = ContentKey::Of(content), .placement = Placement::kCpu};
}

std::optional<std::string> WhyNoAnswer(const JobSpec& spec, const Observed& observed) {
  const auto job = PassJobOf(spec);
  if (!job) return job.error().message;
  for (const passes::Observation observation : job->observations) {
    const auto& info = passes::InfoOf(observation);
    const auto found = observed.values.find(info.name);
    if (found == observed.values.end()) return fmt::format("it has no value '{}'", info.name);
    if (!IsOfType(found->second, info.type)) {
      return fmt::format("its value '{}' is of another type", info.name);
    }
  }
  return std::nullopt;
}

}  // namespace loopfleet
