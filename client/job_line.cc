#include "client/job_line.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "client/json_line.h"
#include "common/base/enum_names.h"
#include "common/base/suggestion.h"
#include "common/job/field_json.h"
#include "common/job/job_fields.h"
#include "common/job/task.h"
#include "common/looptree/program/limits.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::client {
namespace {

using nlohmann::json;

constexpr int kMaxNesting = kMaxTagNesting + 1;  // only "tag" may nest arrays and objects

template <std::integral T>
std::pair<T, T> RangeOf(std::string_view key) {
  if (key == "threads") return {T{1}, static_cast<T>(kMostThreads)};
  if (key == "priority") return {static_cast<T>(kLeastPriority), static_cast<T>(kMostPriority)};
  return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

// Reads fields of one object into variables; keeps the first error.
class FieldReader {
 public:
  explicit FieldReader(const json& object) : object_(object) {}

  const std::optional<std::string>& complaint() const { return complaint_; }

  bool Has(std::string_view key) const { return object_.contains(key); }

  void Read(std::string_view key, std::string& place) {
    if (const json* value = Find(key, &json::is_string, "a string")) {
      place = value->get<std::string>();
    }
  }

  void Read(std::string_view key, bool& place) {
    if (const json* value = Find(key, &json::is_boolean, "true or false")) {
      place = value->get<bool>();
    }
  }

  void Read(std::string_view key, Freshness& place) {
    bool fresh = place == Freshness::kMeasureAgain;
    Read(key, fresh);
    place = fresh ? Freshness::kMeasureAgain : Freshness::kAllowStored;
  }

  void Read(std::string_view key, std::vector<std::string>& place) {
    const json* value = Find(key, &json::is_array, "an array of strings");
    if (value == nullptr) return;
    for (std::size_t i = 0; i < value->size(); ++i) {
      const json& item = (*value)[i];
      if (!item.is_string()) {
        return Complain(fmt::format("'{}'[{}] must be a string, not {}", key, i, item.type_name()));
      }
      place.push_back(item.get<std::string>());
    }
  }

  template <std::integral T>
  void Read(std::string_view key, T& place) {
    const json* value = Find(key, &json::is_number, "a whole number");
    if (value == nullptr) return;
    // A whole number of more than 64 bits is read as a fraction, too.
    const bool is_in_range =
        value->is_number_unsigned()
            ? std::in_range<T>(value->get<std::uint64_t>())
            : value->is_number_integer() && std::in_range<T>(value->get<std::int64_t>());
    if (!is_in_range) {
      const auto [least, most] = RangeOf<T>(key);
      return Complain(fmt::format("'{}' must be a whole number from {} to {}, not {}", key, least,
                                  most, value->dump()));
    }
    place = value->get<T>();
  }

  void Read(std::string_view key, double& place) {
    const json* value = Find(key, &json::is_number, "a number");
    if (value == nullptr) return;
    place = value->get<double>();
    if (!std::isfinite(place) || place < 0) {
      Complain(fmt::format("'{}' must not be negative, but is {}", key, value->dump()));
    }
  }

  template <class T>
  void Read(std::string_view key, std::optional<T>& place) {
    if (Has(key)) Read(key, place.emplace());
  }

  template <class E>
    requires std::is_enum_v<E>
  void Read(std::string_view key, E& place) {
    std::string name(EnumName(place));
    Read(key, name);
    if (const auto named = ValueNamed<E>(name)) {
      place = *named;
    } else {
      Complain(fmt::format("'{}' must be {}, not '{}'{}", key, fmt::join(AllNames<E>(), " or "),
                           name, NearestSuffix(name, AllNames<E>())));
    }
  }

  void Complain(std::string text) {
    if (!complaint_) complaint_ = std::move(text);
  }

 private:
  const json* Find(std::string_view key, bool (json::*is_right)() const noexcept,
                   const char* wanted) {
    const auto found = object_.find(key);
    if (found == object_.end()) return nullptr;
    if (!((*found).*is_right)()) {
      Complain(fmt::format("'{}' must be {}, not {}", key, wanted, found->type_name()));
      return nullptr;
    }
    return &*found;
  }

  const json& object_;
  std::optional<std::string> complaint_;
};

std::expected<json, std::string> ParseObject(std::string_view line) {
  auto value = ParseJsonLine(line, {.nesting = kMaxNesting});
  if (value && !value->is_object()) {
    return std::unexpected(
        fmt::format("a job is a JSON object, not {}: {{\"benchmark\": ..., \"actions\": [...]}}",
                    value->type_name()));
  }
  return value;
}

// Keeps the fields of a job that are shown even if it is rejected.
void Remember(const json& object, RejectedJob& rejected) {
  if (const auto found = object.find("benchmark"); found != object.end() && found->is_string()) {
    rejected.benchmark = found->get<std::string>();
  }
  if (const auto found = object.find("actions"); found != object.end() && found->is_array()) {
    for (const json& action : *found) {
      if (action.is_string()) rejected.actions.push_back(action.get<std::string>());
    }
  }
  if (const auto found = object.find("tag"); found != object.end()) {
    rejected.tag = found->dump(-1, ' ', false, json::error_handler_t::replace);
  }
}

}  // namespace

const std::vector<std::string_view>& JobLineFields() {
  static const auto* const names = [] {
    auto* list = new std::vector<std::string_view>{"benchmark", "ir", "actions"};
    const JobSpec spec;
    ForEachField([&](const JobField& field, const auto&) { list->push_back(field.name); }, spec);
    return list;
  }();
  return *names;
}

namespace {

std::optional<std::string> UnknownField(const json& object) {
  const std::vector<std::string_view>& names = JobLineFields();
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(names, key) == names.end()) {
      return fmt::format("unknown field {}{}", Quoted(key), NearestSuffix(key, names));
    }
  }
  return std::nullopt;
}

void ReadSource(FieldReader& fields, JobSpec& spec) {
  if (fields.Has("benchmark") == fields.Has("ir")) {
    return fields.Complain("a job needs either 'benchmark' or 'ir', and not both");
  }
  std::string text;
  fields.Read(fields.Has("ir") ? "ir" : "benchmark", text);
  if (fields.Has("ir")) {
    spec.source = looptree::IrText{std::move(text)};
  } else {
    spec.source = looptree::BenchmarkUri{FullUri(std::move(text))};
  }
}

std::optional<Failure> ReadActions(const std::vector<std::string>& names, JobSpec& spec) {
  const std::uint32_t most = looptree::Limits{}.actions;
  if (names.size() > most) {
    return Failure{.code = FailureCode::kLimitActions,
                   .message = fmt::format("{} actions; one job may have {}", names.size(), most)};
  }
  auto actions = looptree::ParseActions(names);
  if (!actions) return ToFailure(actions.error());
  spec.actions = *std::move(actions);
  return std::nullopt;
}

Failure Malformed(std::string message) {
  return Failure{.code = FailureCode::kMalformed, .message = std::move(message)};
}

}  // namespace

std::expected<JobSpec, RejectedJob> ParseJobLine(std::string_view line) {
  RejectedJob rejected;
  const auto reject = [&](Failure failure) {
    rejected.failure = std::move(failure);
    return std::unexpected(std::move(rejected));
  };
  if (line.size() > kMaxLineBytes) {
    return reject(Malformed(fmt::format("the line has more than {} bytes", kMaxLineBytes)));
  }
  const auto object = ParseObject(line);
  if (!object) return reject(Malformed(object.error()));
  Remember(*object, rejected);
  if (auto unknown = UnknownField(*object)) return reject(Malformed(*std::move(unknown)));

  JobSpec spec;
  spec.tag = rejected.tag;
  FieldReader fields(*object);
  ReadSource(fields, spec);
  const bool is_for_loops = TaskOf(spec.source).kind == TaskKind::kLoopSchedule;
  if (is_for_loops && !fields.Has("actions")) {
    fields.Complain("a job needs 'actions': [] is none");
  }
  std::vector<std::string> names;
  fields.Read("actions", names);
  ForEachField(
      [&](const JobField& field, auto& value) {
        if (field.name != kTagField) fields.Read(field.name, value);
      },
      spec);
  if (fields.complaint()) return reject(Malformed(*fields.complaint()));
  if (auto failure = ReadActions(names, spec)) return reject(*std::move(failure));
  if (auto failure = wire::OutOfBounds(spec)) return reject(*std::move(failure));
  if (auto failure = ValidateJob(spec)) return reject(*std::move(failure));
  return spec;
}

std::string FullUri(std::string benchmark) {
  static constexpr std::string_view kDigits = "0123456789";
  static constexpr std::string_view kOfNames =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  const std::string_view text = benchmark;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash + 1 == text.size()) return benchmark;
  const std::string_view dataset = text.substr(0, slash);
  const std::size_t version = dataset.rfind("-v");
  const bool is_short =
      version != std::string_view::npos && version > 0 && version + 2 < dataset.size() &&
      dataset.substr(version + 2).find_first_not_of(kDigits) == std::string_view::npos &&
      dataset.find_first_not_of(kOfNames) == std::string_view::npos &&
      text.find_first_of(" \t\r\n") == std::string_view::npos;
  return is_short ? "benchmark://" + benchmark : benchmark;
}

std::string JobLine(const JobSpec& spec) {
  nlohmann::ordered_json line;
  if (const auto* ir = std::get_if<looptree::IrText>(&spec.source)) {
    line["ir"] = ir->text;
  } else {
    line["benchmark"] = std::get<looptree::BenchmarkUri>(spec.source).text;
  }
  line["actions"] = looptree::ActionNames(spec.actions);
  static const JobSpec kDefaults;
  ForEachField(
      [&](const JobField& field, const auto& value, const auto& when_unset) {
        if (value == when_unset || field.name == kTagField) return;
        line[field.name] = FieldJson<nlohmann::ordered_json>(value);
      },
      spec, kDefaults);
  if (!spec.tag.empty()) {
    auto tag = nlohmann::ordered_json::parse(spec.tag, nullptr, /*allow_exceptions=*/false);
    line["tag"] = tag.is_discarded() ? nlohmann::ordered_json(spec.tag) : std::move(tag);
  }
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace loopfleet::client
