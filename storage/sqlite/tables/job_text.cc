#include "storage/sqlite/tables/job_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <tuple>
#include <variant>

#include "common/base/check.h"

namespace loopfleet::storage {
namespace {

using nlohmann::json;

template <class E>
struct Name {
  E value;
  std::string_view text;
};
constexpr std::array kRules = {Name{looptree::RuleSet::kStructural, "structural"},
                               Name{looptree::RuleSet::kLoopNest, "loop_nest"},
                               Name{looptree::RuleSet::kLoopNest58, "loop_nest_58"}};
constexpr std::array kOnIllegal = {Name{looptree::OnIllegal::kReject, "reject"},
                                   Name{looptree::OnIllegal::kSkip, "skip"}};
constexpr std::array kDialects = {Name{looptree::Dialect::kSimple, "simple"},
                                  Name{looptree::Dialect::kAgent, "agent"}};
constexpr std::array kDevices = {
    Name{DeviceRequest::kByBenchmark, "by_benchmark"}, Name{DeviceRequest::kCpu, "cpu"},
    Name{DeviceRequest::kCuda, "cuda"}, Name{DeviceRequest::kAny, "any"}};
constexpr std::array kCaches = {Name{CacheState::kWarm, "warm"}, Name{CacheState::kCold, "cold"}};
constexpr std::array kGradeNames = {Name{Grade::kA, "A"}, Name{Grade::kB, "B"},
                                    Name{Grade::kC, "C"}, Name{Grade::kD, "D"}};

template <class E, std::size_t N>
std::string_view TextOf(const std::array<Name<E>, N>& names, E value) {
  for (const Name<E>& name : names) {
    if (name.value == value) return name.text;
  }
  LF_CHECK(false, "no name for {}", static_cast<int>(value));
}

template <class E, std::size_t N>
E ValueOf(const std::array<Name<E>, N>& names, const json& text) {
  for (const Name<E>& name : names) {
    if (name.text == text.get_ref<const std::string&>()) return name.value;
  }
  throw std::invalid_argument(text.get<std::string>());  // caught in ParseOptionsText
}

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
  looptree::Split split;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kSplitPrefix.size(), end, split.factor);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return split;
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

bool HasOnlyDefaults(const JobSpec& spec, Freshness freshness) {
  static const JobSpec kDefaults;
  const auto options = [](const JobSpec& of) {
    // By position, so that this does not compile when JobSpec grows.
    const auto& [source, actions, rules, on_illegal, merge_all_first, dialect, device, fresh, tag,
                 priority, threads, cache, labels, affinity, precision, budget_ms, cut_above_ns,
                 deadline_s, max_age_s, min_grade] = of;
    return std::tie(rules, on_illegal, merge_all_first, dialect, device, priority, threads, cache,
                    labels, affinity, precision, budget_ms, cut_above_ns, deadline_s, max_age_s,
                    min_grade);
  };
  return spec.freshness == freshness && options(spec) == options(kDefaults);
}

void SetOption(const std::string& name, const json& value, StoredOptions& stored) {
  JobSpec& spec = stored.spec;
  if (name == "rules")
    spec.rules = ValueOf(kRules, value);
  else if (name == "on_illegal")
    spec.on_illegal = ValueOf(kOnIllegal, value);
  else if (name == "merge_all_first")
    spec.merge_all_first = value.get<bool>();
  else if (name == "dialect")
    spec.dialect = ValueOf(kDialects, value);
  else if (name == "device")
    spec.device = ValueOf(kDevices, value);
  else if (name == "fresh")
    spec.freshness = value.get<bool>() ? Freshness::kMeasureAgain : Freshness::kAllowStored;
  else if (name == "priority")
    spec.priority = value.get<std::int32_t>();
  else if (name == "threads")
    spec.threads = value.get<std::uint32_t>();
  else if (name == "cache")
    spec.cache = ValueOf(kCaches, value);
  else if (name == "labels")
    spec.labels = value.get<std::vector<std::string>>();
  else if (name == "affinity")
    spec.affinity = value.get<std::string>();
  else if (name == "precision")
    spec.precision = value.get<double>();
  else if (name == "budget_ms")
    spec.budget_ms = value.get<double>();
  else if (name == "cut_above_ns")
    spec.cut_above_ns = value.get<std::uint64_t>();
  else if (name == "deadline_s")
    spec.deadline_s = value.get<double>();
  else if (name == "accepted_at_ns")
    stored.accepted_at = WallTime(Nanos(value.get<std::int64_t>()));
  else if (name == "max_age_s")
    spec.max_age_s = value.get<double>();
  else if (name == "min_grade")
    spec.min_grade = ValueOf(kGradeNames, value);
  else
    throw std::invalid_argument(name);
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
  if (HasOnlyDefaults(spec, Freshness::kAllowStored)) return std::nullopt;
  if (HasOnlyDefaults(spec, Freshness::kMeasureAgain)) return std::string(kOnlyFresh);
  for (const double number : {spec.precision, spec.budget_ms, spec.deadline_s, spec.max_age_s}) {
    if (!std::isfinite(number)) {
      return Fail(ErrorKind::kInvalid, fmt::format("an option of a job is {}", number));
    }
  }
  json options;
  const auto set = [&](const char* name, const auto& value, const auto& fallback, auto text) {
    if (value != fallback) options[name] = text(value);
  };
  const auto itself = [](const auto& value) { return value; };
  const auto name_in = [](const auto& names) {
    return [&names](auto value) { return TextOf(names, value); };
  };
  set("rules", spec.rules, kDefaults.rules, name_in(kRules));
  set("on_illegal", spec.on_illegal, kDefaults.on_illegal, name_in(kOnIllegal));
  set("merge_all_first", spec.merge_all_first, kDefaults.merge_all_first, itself);
  if (spec.dialect) options["dialect"] = TextOf(kDialects, *spec.dialect);
  set("device", spec.device, kDefaults.device, name_in(kDevices));
  if (spec.freshness == Freshness::kMeasureAgain) options["fresh"] = true;
  set("priority", spec.priority, kDefaults.priority, itself);
  set("threads", spec.threads, kDefaults.threads, itself);
  set("cache", spec.cache, kDefaults.cache, name_in(kCaches));
  set("labels", spec.labels, kDefaults.labels, itself);
  set("affinity", spec.affinity, kDefaults.affinity, itself);
  set("precision", spec.precision, kDefaults.precision, itself);
  set("budget_ms", spec.budget_ms, kDefaults.budget_ms, itself);
  set("cut_above_ns", spec.cut_above_ns, kDefaults.cut_above_ns, itself);
  set("deadline_s", spec.deadline_s, kDefaults.deadline_s, itself);
  if (spec.deadline_s != 0) options["accepted_at_ns"] = accepted_at.time_since_epoch().count();
  set("max_age_s", spec.max_age_s, kDefaults.max_age_s, itself);
  set("min_grade", spec.min_grade, kDefaults.min_grade, name_in(kGradeNames));
  if (options.is_null()) return std::nullopt;
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
