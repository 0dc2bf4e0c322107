#include "storage/sqlite/tables/job_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <variant>

#include "common/base/check.h"
#include "common/base/enum_names.h"
#include "common/base/number_in.h"
#include "common/job/field_json.h"
#include "common/job/job_fields.h"

namespace loopfleet::storage {
namespace {

using nlohmann::json;

// Actions without a parameter, by name. (A split has a factor.)
struct PlainAction {
  std::string name;
  looptree::Action action;
};
const std::vector<PlainAction>& PlainActions() {
  using namespace looptree;
  static const auto* const actions = [] {
    auto* list = new std::vector<PlainAction>;
    for (const Action& action :
         {Action(Down{}), Action(Up{}), Action(SwapDown{}), Action(SwapUp{}), Action(Merge{}),
          Action(Unroll{}), Action(Vectorize{}), Action(ToggleMode{}), Action(ToggleThread{}),
          Action(IdleSplit{}), Action(Undo{}), Action(Dummy{}), Action(MergeAllLoops{})}) {
      list->push_back({ActionName(action), action});
    }
    LF_CHECK(list->size() + 1 == std::variant_size_v<Action>, "an action is missing here");
    return list;
  }();
  return *actions;
}

constexpr std::string_view kSplitPrefix = "split_";

std::optional<looptree::Action> ParseStoredAction(std::string_view name) {
  for (const PlainAction& plain : PlainActions()) {
    if (plain.name == name) return plain.action;
  }
  if (!name.starts_with(kSplitPrefix)) return std::nullopt;
  const auto factor = NumberIn<std::int64_t>(name.substr(kSplitPrefix.size()));
  if (!factor) return std::nullopt;
  return looptree::Split{*factor};
}

void AppendActionText(std::string& text, const looptree::Action& action) {
  static const auto* const names = [] {  // by index in the variant
    auto* list = new std::array<std::string, std::variant_size_v<looptree::Action>>;
    for (const PlainAction& plain : PlainActions()) (*list)[plain.action.index()] = plain.name;
    return list;
  }();
  if (const auto* split = std::get_if<looptree::Split>(&action)) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, split->factor).ptr;
    text.append(kSplitPrefix).append(digits, end);
  } else {
    text += (*names)[action.index()];
  }
}

Result<std::string> Dump(const json& value) {
  try {
    return value.dump();
  } catch (const json::exception& error) {
    return Fail(ErrorKind::kInvalid, fmt::format("job text is not valid UTF-8: {}", error.what()));
  }
}

constexpr std::string_view kOnlyFresh = R"({"fresh":true})";

// Whether the tag and whether it is measured again is all that the job says.
bool HasOnlyDefaults(const JobSpec& spec) {
  static const JobSpec kDefaults;
  bool has = true;
  ForEachField(
      [&](const JobField& field, const auto& value, const auto& when_unset) {
        constexpr bool kIsFresh = std::is_same_v<decltype(value), const Freshness&>;
        if (!kIsFresh && field.name != kTagField) has &= value == when_unset;
      },
      spec, kDefaults);
  return has;
}

// Throws if the JSON is of another type or names no value: caught in ParseOptionsText.
template <class T>
void FromJson(const json& value, T& place) {
  if constexpr (std::is_enum_v<T>) {
    const auto& name = value.get_ref<const std::string&>();
    const auto named = ValueNamed<T>(name);
    if (!named) throw std::invalid_argument(name);
    place = *named;
  } else {
    place = value.get<T>();
  }
}
void FromJson(const json& value, Freshness& place) {
  place = value.get<bool>() ? Freshness::kMeasureAgain : Freshness::kAllowStored;
}
void FromJson(const json& value, std::optional<looptree::Dialect>& place) {
  FromJson(value, place.emplace());
}

constexpr std::string_view kAcceptedAt = "accepted_at_ns";

void SetOption(const std::string& name, const json& value, StoredOptions& stored) {
  if (name == kAcceptedAt) {
    stored.accepted_at = WallTime(Nanos(value.get<std::int64_t>()));
    return;
  }
  bool is_known = false;
  ForEachField(
      [&](const JobField& field, auto& place) {
        if (field.name != name || name == kTagField) return;
        FromJson(value, place);
        is_known = true;
      },
      stored.spec);
  if (!is_known) throw std::invalid_argument(name);
}

}  // namespace

std::string ActionsText(const std::vector<looptree::Action>& actions) {
  std::string text;
  text.reserve(actions.size() * 10);  // a guess; most names are shorter
  for (const looptree::Action& action : actions) {
    if (!text.empty()) text += ',';
    AppendActionText(text, action);
  }
  return text;
}

Result<std::vector<looptree::Action>> ParseActionsText(std::string_view text) {
  std::vector<looptree::Action> actions;
  actions.reserve(static_cast<std::size_t>(std::ranges::count(text, ',')) + 1);
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    const auto action = ParseStoredAction(name);
    if (!action) return Fail(ErrorKind::kInvalid, fmt::format("unknown stored action '{}'", name));
    actions.push_back(*action);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return actions;
}

Result<std::optional<std::string>> OptionsText(const JobSpec& spec, WallTime accepted_at) {
  static const JobSpec kDefaults;
  // Nearly all jobs have one of these, and building JSON costs more than writing the row.
  if (HasOnlyDefaults(spec)) {
    if (spec.freshness == Freshness::kAllowStored) return std::nullopt;
    return std::string(kOnlyFresh);
  }
  json options;
  Status valid;
  ForEachField(
      [&]<class T>(const JobField& field, const T& value, const T& when_unset) {
        if (value == when_unset || field.name == kTagField) return;
        if constexpr (std::is_same_v<T, double>) {
          if (!std::isfinite(value)) {
            valid = Fail(ErrorKind::kInvalid,
                         fmt::format("option '{}' of a job is {}", field.name, value));
          }
        }
        options[field.name] = FieldJson<json>(value);
      },
      spec, kDefaults);
  LF_TRY_VOID(std::move(valid));
  if (spec.deadline_s != 0) options[kAcceptedAt] = accepted_at.time_since_epoch().count();
  LF_TRY(std::string text, Dump(options));
  return text;
}

Status ParseOptionsText(std::string_view text, StoredOptions& stored) {
  if (text == kOnlyFresh) {
    stored.spec.freshness = Freshness::kMeasureAgain;
    return {};
  }
  try {
    const json options = json::parse(text);
    for (const auto& [name, value] : options.items()) SetOption(name, value, stored);
  } catch (const std::exception& error) {  // nlohmann's, or an unknown name
    return Fail(ErrorKind::kInvalid,
                fmt::format("a job's options '{}' are of another version: {}", text, error.what()));
  }
  return {};
}

Result<std::optional<std::string>> ListText(const std::vector<std::string>& texts) {
  if (texts.empty()) return std::nullopt;
  LF_TRY(std::string text, Dump(json(texts)));
  return text;
}

Result<std::vector<std::string>> ParseListText(std::string_view text) {
  try {
    return json::parse(text).get<std::vector<std::string>>();
  } catch (const json::exception& error) {
    return Fail(ErrorKind::kInvalid, fmt::format("'{}' is not a list: {}", text, error.what()));
  }
}

}  // namespace loopfleet::storage
