// OutOfBounds: the bounds of a job, checked by sender and receiver alike.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <utility>

#include "common/job/observed.h"
#include "common/looptree/program/limits.h"
#include "common/wire/bounds.h"
#include "common/wire/codec/codec.h"
#include "common/wire/codec/utf8.h"

namespace loopfleet::wire {
namespace {

std::optional<Failure> Malformed(std::string message) {
  return Failure{.code = FailureCode::kMalformed, .message = std::move(message)};
}

struct NamedText {
  std::string_view name;
  const std::string& text;
  std::size_t max_bytes;
};

std::optional<Failure> CheckText(const NamedText& field) {
  if (field.text.size() > field.max_bytes) {
    return Malformed(
        fmt::format("{} has {} bytes; at most {}", field.name, field.text.size(), field.max_bytes));
  }
  if (!IsUtf8(field.text)) return Malformed(fmt::format("{} is not UTF-8", field.name));
  return std::nullopt;
}

std::optional<Failure> CheckSource(const looptree::Source& source) {
  if (const auto* uri = std::get_if<looptree::BenchmarkUri>(&source)) {
    return CheckText({"the benchmark's URI", uri->text, kMaxUriBytes});
  }
  return CheckText({"the program's text", std::get<looptree::IrText>(source).text, kMaxJobBytes});
}

std::optional<Failure> CheckNumbers(const JobSpec& spec) {
  const std::pair<std::string_view, double> numbers[] = {{"precision", spec.precision},
                                                         {"budget_ms", spec.budget_ms},
                                                         {"deadline_s", spec.deadline_s},
                                                         {"max_age_s", spec.max_age_s}};
  for (const auto& [name, value] : numbers) {
    if (!std::isfinite(value)) return Malformed(fmt::format("{} is not a finite number", name));
  }
  return std::nullopt;
}

struct TextBounds {
  std::string_view names;  // "labels"
  std::string_view name;   // "a label"
  std::size_t most = 0;
  std::size_t most_bytes = 0;  // of each
};

std::optional<Failure> CheckTexts(const std::vector<std::string>& texts, const TextBounds& bounds) {
  if (texts.size() > bounds.most) {
    return Malformed(
        fmt::format("the job has {} {}; at most {}", texts.size(), bounds.names, bounds.most));
  }
  for (const std::string& text : texts) {
    if (auto failure = CheckText({bounds.name, text, bounds.most_bytes})) return failure;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Failure> OutOfBounds(const JobSpec& spec) {
  constexpr std::size_t kMaxActions = looptree::Limits{}.actions;
  if (spec.actions.size() > kMaxActions) {
    return Failure{.code = FailureCode::kLimitActions,
                   .message = fmt::format("the job has {} actions; at most {}", spec.actions.size(),
                                          kMaxActions)};
  }
  if (spec.passes.size() > kMostPasses) {
    return Failure{.code = FailureCode::kLimitActions,
                   .message = fmt::format("the job has {} passes; at most {}", spec.passes.size(),
                                          kMostPasses)};
  }
  if (auto failure = CheckSource(spec.source)) return failure;
  if (auto failure = CheckText({"tag", spec.tag, kMaxTagBytes})) return failure;
  if (auto failure = CheckText({"affinity", spec.affinity, kMaxLabelBytes})) return failure;
  constexpr TextBounds kLabels{"labels", "a label", kMaxLabels, kMaxLabelBytes};
  if (auto failure = CheckTexts(spec.labels, kLabels)) return failure;
  constexpr TextBounds kPasses{"passes", "a pass", kMostPasses, kMostPassBytes};
  if (auto failure = CheckTexts(spec.passes, kPasses)) return failure;
  constexpr TextBounds kObserve{"observations", "an observation", kMostObserved,
                                kMostObservedNameBytes};
  if (auto failure = CheckTexts(spec.observe, kObserve)) return failure;
  if (auto failure = CheckNumbers(spec)) return failure;
  if (EncodedSize(spec) > kMaxJobBytes) {
    return Malformed(
        fmt::format("the job needs up to {} bytes; at most {}", EncodedSize(spec), kMaxJobBytes));
  }
  return std::nullopt;
}

std::optional<Failure> CheckTag(const JobSpec& spec) {
  if (spec.tag.empty() || nlohmann::json::accept(spec.tag)) return std::nullopt;
  return Malformed("tag is not JSON text");
}

}  // namespace loopfleet::wire
