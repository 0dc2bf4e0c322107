// OutOfBounds: the bounds of a job, checked by sender and receiver alike.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/job/job_fields.h"
#include "common/looptree/program/limits.h"
#include "common/wire/bounds.h"
#include "common/wire/codec/codec.h"
#include "common/wire/codec/utf8.h"

namespace loopfleet::wire {
namespace {

std::optional<Failure> Malformed(std::string message) {
  return Failure{.code = FailureCode::kMalformed, .message = std::move(message)};
}

std::optional<Failure> CheckText(std::string_view name, const std::string& text,
                                 std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    return Malformed(fmt::format("{} has {} bytes; at most {}", name, text.size(), max_bytes));
  }
  if (!IsUtf8(text)) return Malformed(fmt::format("{} is not UTF-8", name));
  return std::nullopt;
}

std::optional<Failure> CheckSource(const looptree::Source& source) {
  if (const auto* uri = std::get_if<looptree::BenchmarkUri>(&source)) {
    return CheckText("the benchmark's URI", uri->text, kMaxUriBytes);
  }
  return CheckText("the program's text", std::get<looptree::IrText>(source).text, kMaxJobBytes);
}

// The first field that is out of its bounds.
struct FieldCheck {
  std::optional<Failure> failure;

  void operator()(const JobField& field, const std::string& text) {
    if (!failure) failure = CheckText(field.name, text, field.most_bytes);
  }
  void operator()(const JobField& field, const std::vector<std::string>& texts) {
    if (!failure && texts.size() > field.most) {
      failure = Malformed(
          fmt::format("{} has {} entries; at most {}", field.name, texts.size(), field.most));
    }
    for (const std::string& text : texts) {
      if (!failure)
        failure = CheckText(fmt::format("an entry of {}", field.name), text, field.most_bytes);
    }
  }
  void operator()(const JobField& field, double value) {
    if (failure || std::isfinite(value)) return;
    failure = Malformed(fmt::format("{} is not a finite number", field.name));
  }
  template <class Other>
  void operator()(const JobField& /*field*/, const Other& /*value*/) {}
};

std::optional<Failure> CheckCount(std::string_view what, std::size_t count, std::size_t most) {
  if (count <= most) return std::nullopt;
  return Failure{.code = FailureCode::kLimitActions,
                 .message = fmt::format("the job has {} {}; at most {}", count, what, most)};
}

// How many arrays and objects of this JSON text lie inside each other.
std::size_t NestingOf(std::string_view json) {
  std::size_t nesting = 0;
  std::size_t deepest = 0;
  bool is_in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') is_in_text = !is_in_text;
    if (is_in_text) {
      if (c == '\\') ++i;  // skips an escaped quote
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++nesting);
    } else if (c == ']' || c == '}') {
      --nesting;
    }
  }
  return deepest;
}

}  // namespace

std::optional<Failure> OutOfBounds(const JobSpec& spec) {
  constexpr std::size_t kMaxActions = looptree::Limits{}.actions;
  if (auto failure = CheckCount("actions", spec.actions.size(), kMaxActions)) return failure;
  if (auto failure = CheckCount("passes", spec.passes.size(), kMostPasses)) return failure;
  if (auto failure = CheckSource(spec.source)) return failure;
  FieldCheck check;
  ForEachField(check, spec);
  if (check.failure) return check.failure;
  if (EncodedSize(spec) > kMaxJobBytes) {
    return Malformed(
        fmt::format("the job needs up to {} bytes; at most {}", EncodedSize(spec), kMaxJobBytes));
  }
  return std::nullopt;
}

std::optional<Failure> CheckTag(const JobSpec& spec) {
  if (spec.tag.empty()) return std::nullopt;
  if (!nlohmann::json::accept(spec.tag)) return Malformed("tag is not JSON text");
  if (NestingOf(spec.tag) <= kMaxTagNesting) return std::nullopt;
  return Malformed(fmt::format("tag is nested deeper than {}", kMaxTagNesting));
}

}  // namespace loopfleet::wire
