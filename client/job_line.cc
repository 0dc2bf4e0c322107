#include "client/job_line.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "client/json_line.h"
#include "common/base/suggestion.h"
#include "common/looptree/program/limits.h"
#include "common/wire/codec/codec.h"

namespace loopfleet::client {
namespace {

using nlohmann::json;

constexpr int kMaxNesting = 32;  // of arrays and objects; only "tag" may nest them

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

constexpr std::array kDialects = {Choice{"simple", looptree::Dialect::kSimple},
                                  Choice{"agent", looptree::Dialect::kAgent}};
constexpr std::array kRuleSets = {Choice{"structural", looptree::RuleSet::kStructural},
                                  Choice{"loop_nest", looptree::RuleSet::kLoopNest},
                                  Choice{"loop_nest_58", looptree::RuleSet::kLoopNest58}};
constexpr std::array kOnIllegal = {Choice{"reject", looptree::OnIllegal::kReject},
                                   Choice{"skip", looptree::OnIllegal::kSkip}};
constexpr std::array kDevices = {Choice{"cpu", DeviceRequest::kCpu},
                                 Choice{"cuda", DeviceRequest::kCuda},
                                 Choice{"any", DeviceRequest::kAny}};
constexpr std::array kCaches = {Choice{"warm", CacheState::kWarm},
                                Choice{"cold", CacheState::kCold}};
constexpr std::array kMinGrades = {Choice{"A", Grade::kA}, Choice{"B", Grade::kB},
                                   Choice{"C", Grade::kC}, Choice{"D", Grade::kD}};

template <class T, std::size_t N>
std::string_view NameOf(const std::array<Choice<T>, N>& choices, T value) {
  for (const Choice<T>& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return "";
}

// Reads fields of one object into variables; keeps the first error.
class FieldReader {
 public:
  explicit FieldReader(const json& object) : object_(object) {}

  const std::optional<std::string>& complaint() const { return complaint_; }

  bool Has(const char* key) const { return object_.contains(key); }

  void Text(const char* key, std::string& place) {
    if (const json* value = Find(key, &json::is_string, "a string")) {
      place = value->get<std::string>();
    }
  }

  void Flag(const char* key, bool& place) {
    if (const json* value = Find(key, &json::is_boolean, "true or false")) {
      place = value->get<bool>();
    }
  }

  void Texts(const char* key, std::vector<std::string>& place) {
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

  template <class T>
  void Whole(const char* key, T& place, T least) {
    const json* value = Find(key, &json::is_number_integer, "a whole number");
    if (value == nullptr) return;
    const bool huge = value->is_number_unsigned() &&
                      value->get<std::uint64_t>() > std::uint64_t{std::numeric_limits<T>::max()};
    const bool low = !value->is_number_unsigned() &&
                     value->get<std::int64_t>() < static_cast<std::int64_t>(least);
    const bool below = value->is_number_unsigned() && least > 0 &&
                       value->get<std::uint64_t>() < static_cast<std::uint64_t>(least);
    if (huge || low || below) {
      return Complain(fmt::format("'{}' must be from {} to {}, not {}", key, least,
                                  std::numeric_limits<T>::max(), value->dump()));
    }
    place = value->get<T>();
  }

  void Amount(const char* key, double& place) {
    const json* value = Find(key, &json::is_number, "a number");
    if (value == nullptr) return;
    place = value->get<double>();
    if (!std::isfinite(place) || place < 0) {
      Complain(fmt::format("'{}' must not be negative, but is {}", key, value->dump()));
    }
  }

  template <class T, std::size_t N, class Place>
  void OneOf(const char* key, const std::array<Choice<T>, N>& choices, Place& place) {
    if (!Has(key)) return;
    std::string name;
    Text(key, name);
    if (complaint_) return;
    std::vector<std::string_view> names;
    for (const Choice<T>& choice : choices) {
      if (choice.name == name) {
        place = choice.value;
        return;
      }
      names.push_back(choice.name);
    }
    Complain(fmt::format("'{}' must be {}, not '{}'{}", key, fmt::join(names, " or "), name,
                         NearestSuffix(name, names)));
  }

  void Complain(std::string text) {
    if (!complaint_) complaint_ = std::move(text);
  }

 private:
  const json* Find(const char* key, bool (json::*is_right)() const noexcept, const char* wanted) {
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

std::optional<std::string> UnknownField(const json& object) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(kJobFields.begin(), kJobFields.end(), key) == kJobFields.end()) {
      return fmt::format("unknown field '{}'{}", key, NearestSuffix(key, kJobFields));
    }
  }
  return std::nullopt;
}

void ReadConditions(FieldReader& fields, JobSpec& spec) {
  fields.OneOf("dialect", kDialects, spec.dialect);
  fields.OneOf("rules", kRuleSets, spec.rules);
  fields.OneOf("on_illegal", kOnIllegal, spec.on_illegal);
  fields.Flag("merge_all_first", spec.merge_all_first);
  fields.OneOf("device", kDevices, spec.device);
  bool fresh = false;
  fields.Flag("fresh", fresh);
  spec.freshness = fresh ? Freshness::kMeasureAgain : Freshness::kAllowStored;
  fields.Texts("labels", spec.labels);
  fields.Text("affinity", spec.affinity);
  fields.Whole<std::uint32_t>("threads", spec.threads, 1);
  fields.OneOf("cache", kCaches, spec.cache);
  fields.Whole<std::int32_t>("priority", spec.priority, std::numeric_limits<std::int32_t>::min());
  fields.Amount("precision", spec.precision);
  fields.Amount("budget_ms", spec.budget_ms);
  fields.Whole<std::uint64_t>("cut_above_ns", spec.cut_above_ns, 0);
  fields.Amount("deadline_s", spec.deadline_s);
  fields.Amount("max_age_s", spec.max_age_s);
  fields.OneOf("min_grade", kMinGrades, spec.min_grade);
}

void ReadSource(FieldReader& fields, JobSpec& spec) {
  if (fields.Has("benchmark") == fields.Has("ir")) {
    return fields.Complain("a job needs either 'benchmark' or 'ir', and not both");
  }
  std::string text;
  fields.Text(fields.Has("ir") ? "ir" : "benchmark", text);
  if (fields.Has("ir")) {
    spec.source = looptree::IrText{std::move(text)};
  } else {
    spec.source = looptree::BenchmarkUri{std::move(text)};
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
  if (!fields.Has("actions")) fields.Complain("a job needs 'actions': [] is none");
  std::vector<std::string> names;
  fields.Texts("actions", names);
  ReadConditions(fields, spec);
  if (fields.complaint()) return reject(Malformed(*fields.complaint()));
  if (auto failure = ReadActions(names, spec)) return reject(*std::move(failure));
  if (auto failure = wire::OutOfBounds(spec)) return reject(*std::move(failure));
  if (auto failure = ValidateSpec(spec)) return reject(*std::move(failure));
  return spec;
}

std::string JobLine(const JobSpec& spec) {
  nlohmann::ordered_json line;
  if (const auto* ir = std::get_if<looptree::IrText>(&spec.source)) {
    line["ir"] = ir->text;
  } else {
    line["benchmark"] = std::get<looptree::BenchmarkUri>(spec.source).text;
  }
  line["actions"] = nlohmann::ordered_json::array();
  for (const auto& action : spec.actions) line["actions"].push_back(looptree::ActionName(action));
  const JobSpec plain;
  if (spec.dialect) line["dialect"] = NameOf(kDialects, *spec.dialect);
  if (spec.rules != plain.rules) line["rules"] = NameOf(kRuleSets, spec.rules);
  if (spec.on_illegal != plain.on_illegal) line["on_illegal"] = NameOf(kOnIllegal, spec.on_illegal);
  if (spec.merge_all_first) line["merge_all_first"] = true;
  if (spec.device != plain.device) line["device"] = NameOf(kDevices, spec.device);
  if (!spec.labels.empty()) line["labels"] = spec.labels;
  if (!spec.affinity.empty()) line["affinity"] = spec.affinity;
  if (spec.threads != plain.threads) line["threads"] = spec.threads;
  if (spec.cache != plain.cache) line["cache"] = NameOf(kCaches, spec.cache);
  if (spec.priority != plain.priority) line["priority"] = spec.priority;
  if (spec.precision != plain.precision) line["precision"] = spec.precision;
  if (spec.budget_ms != plain.budget_ms) line["budget_ms"] = spec.budget_ms;
  if (spec.cut_above_ns != plain.cut_above_ns) line["cut_above_ns"] = spec.cut_above_ns;
  if (spec.deadline_s != plain.deadline_s) line["deadline_s"] = spec.deadline_s;
  if (spec.freshness == Freshness::kMeasureAgain) line["fresh"] = true;
  if (spec.max_age_s != plain.max_age_s) line["max_age_s"] = spec.max_age_s;
  if (spec.min_grade != plain.min_grade) line["min_grade"] = NameOf(kMinGrades, spec.min_grade);
  if (!spec.tag.empty()) {
    auto tag = nlohmann::ordered_json::parse(spec.tag, nullptr, /*allow_exceptions=*/false);
    line["tag"] = tag.is_discarded() ? nlohmann::ordered_json(spec.tag) : std::move(tag);
  }
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace loopfleet::client
