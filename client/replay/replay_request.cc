#include "client/replay/replay_request.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "client/json_line.h"
#include "common/base/result.h"
#include "common/base/suggestion.h"

namespace loopfleet::client {
namespace {

using looptree::FeatureLayout;
using looptree::RuleSet;
using nlohmann::json;

template <class T>
using Parsed = std::expected<T, Failure>;

constexpr int kMaxNesting = 4;  // a request needs 2
// More than a job may have (looptree::Limits::actions): it bounds the time and reply of one line
// only.
constexpr std::size_t kMaxActions = 4096;
constexpr std::size_t kMaxActionSpace = 2048;  // more than all documented split factors, 2 to 1024
constexpr std::size_t kMaxValues = 16'384;     // in the line's JSON
// A tree has at most looptree::Limits::tree_nodes loops; more rows would be padding only.
constexpr std::int64_t kMostLoops = looptree::Limits{}.tree_nodes;

std::unexpected<Failure> Malformed(std::string message) {
  return std::unexpected(Failure{.code = FailureCode::kMalformed, .message = std::move(message)});
}

// The original's sixteen actions, or the fourteen of its older version with 58 features.
std::vector<std::string> DefaultActionSpace(FeatureLayout features) {
  std::vector<std::string> space = {"down",      "dummy",   "merge",     "split_128",
                                    "split_16",  "split_2", "split_256", "split_32",
                                    "split_4",   "split_5", "split_64",  "split_8",
                                    "swap_down", "swap_up", "unroll",    "up"};
  if (features == FeatureLayout::kAgent58) {
    std::erase(space, "split_5");
    std::erase(space, "unroll");
  }
  return space;
}

Parsed<std::vector<std::string>> Strings(const json& value, std::string_view key) {
  if (!value.is_array()) return Malformed(fmt::format("\"{}\" must be an array of strings", key));
  std::vector<std::string> strings;
  for (const json& item : value) {
    if (!item.is_string()) {
      return Malformed(fmt::format("\"{}\"[{}] must be a string", key, strings.size()));
    }
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

Parsed<std::string> Text(const json& value, std::string_view key) {
  if (!value.is_string()) return Malformed(fmt::format("\"{}\" must be a string", key));
  return value.get<std::string>();
}

Parsed<bool> Bool(const json& value, std::string_view key) {
  if (!value.is_boolean()) return Malformed(fmt::format("\"{}\" must be true or false", key));
  return value.get<bool>();
}

Parsed<std::int64_t> Whole(const json& value, std::string_view key) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX})) {
    return Malformed(fmt::format("\"{}\" must be a whole number, not {}", key,
                                 value.is_number() ? value.dump() : value.type_name()));
  }
  return value.get<std::int64_t>();
}

// The position of `value` among `names`.
Parsed<std::size_t> OneOf(const json& value, std::string_view key,
                          std::span<const std::string_view> names) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const auto at = std::find(names.begin(), names.end(), text);
  if (at == names.end()) {
    return Malformed(fmt::format("\"{}\" must be one of {}{}", key, fmt::join(names, ", "),
                                 NearestSuffix(text, names)));
  }
  return static_cast<std::size_t>(at - names.begin());
}

// Collects the keys' values: some have a meaning only together with others.
struct Draft {
  ReplayRequest request;
  std::optional<RuleSet> rules;
  std::optional<std::vector<std::string>> action_space;
  bool has_source = false;
};

Parsed<void> ReadSource(const json& value, std::string_view key, Draft& draft) {
  LF_TRY(std::string text, Text(value, key));
  if (draft.has_source)
    return Malformed("a line needs exactly one of \"uri\" (or \"benchmark\") and \"ir\"");
  draft.has_source = true;
  if (key == "ir") {
    draft.request.source = looptree::IrText{std::move(text)};
  } else {
    draft.request.source = looptree::BenchmarkUri{std::move(text)};
  }
  return {};
}

Parsed<void> ReadActions(const json& value, std::string_view key, Draft& draft) {
  LF_TRY(const auto names, Strings(value, key));
  if (names.size() > kMaxActions) {
    return std::unexpected(Failure{
        .code = FailureCode::kLimitActions,
        .message = fmt::format("{} actions; at most {} are allowed", names.size(), kMaxActions)});
  }
  LF_TRY(draft.request.actions, Lift(looptree::ParseActions(names)));
  return {};
}

Parsed<void> ReadRules(const json& value, std::string_view key, Draft& draft) {
  LF_TRY(const std::size_t rules, OneOf(value, key, AllNames<RuleSet>()));
  draft.rules = EnumNames<RuleSet>::kAll[rules].value;
  return {};
}

Parsed<void> ReadFeatures(const json& value, std::string_view key, Draft& draft) {
  constexpr std::array<std::string_view, 2> kFeatures = {"agent20", "agent58"};
  LF_TRY(const std::size_t layout, OneOf(value, key, kFeatures));
  draft.request.look.features = layout == 0 ? FeatureLayout::kAgent20 : FeatureLayout::kAgent58;
  return {};
}

Parsed<void> ReadMaxLoops(const json& value, std::string_view key, Draft& draft) {
  LF_TRY(const std::int64_t loops, Whole(value, key));
  if (loops < 1 || loops > kMostLoops) {
    return Malformed(fmt::format("\"{}\" must be from 1 to {}, not {}", key, kMostLoops, loops));
  }
  draft.request.look.max_loops = static_cast<std::size_t>(loops);
  return {};
}

Parsed<void> ReadStrideBuckets(const json& value, std::string_view key, Draft& draft) {
  LF_TRY(const std::int64_t buckets, Whole(value, key));
  if (buckets != 16 && buckets != 32) {
    return Malformed(fmt::format("\"{}\" must be 16 or 32, not {}", key, buckets));
  }
  draft.request.look.stride_buckets = static_cast<std::size_t>(buckets);
  return {};
}

Parsed<void> ReadEveryStep(const json& value, std::string_view key, Draft& draft) {
  LF_TRY(draft.request.every_step, Bool(value, key));
  return {};
}

Parsed<void> ReadActionSpace(const json& value, std::string_view key, Draft& draft) {
  LF_TRY(draft.action_space, Strings(value, key));
  return {};
}

Parsed<void> ReadMergeAllFirst(const json& value, std::string_view key, Draft& draft) {
  LF_TRY(draft.request.merge_all_first, Bool(value, key));
  return {};
}

Parsed<void> ReadStartCursor(const json& value, std::string_view key, Draft& draft) {
  LF_TRY(draft.request.start_cursor, Whole(value, key));
  return {};
}

Parsed<void> ReadObservations(const json& value, std::string_view key, Draft& draft) {
  LF_TRY(draft.request.observations, Strings(value, key));
  return {};
}

struct Key {
  std::string_view name;
  Parsed<void> (*read)(const json& value, std::string_view key, Draft& draft);
};
constexpr std::array kKeys = {Key{"uri", ReadSource},
                              Key{"benchmark", ReadSource},  // as job lines say
                              Key{"ir", ReadSource},
                              Key{"actions", ReadActions},
                              Key{"every_step", ReadEveryStep},
                              Key{"rules", ReadRules},
                              Key{"action_space", ReadActionSpace},
                              Key{"features", ReadFeatures},
                              Key{"max_loops", ReadMaxLoops},
                              Key{"stride_buckets", ReadStrideBuckets},
                              Key{"merge_all_first", ReadMergeAllFirst},
                              Key{"start_cursor", ReadStartCursor},
                              Key{"observations", ReadObservations}};

std::unexpected<Failure> UnknownKey(const std::string& key) {
  std::vector<std::string_view> names;
  for (const Key& known : kKeys) names.push_back(known.name);
  return Malformed(fmt::format("unknown key {}{}", Quoted(key), NearestSuffix(key, names)));
}

Parsed<ActionSpace> MakeSpace(const Draft& draft) {
  ActionSpace space;
  space.names = draft.action_space.value_or(DefaultActionSpace(draft.request.look.features));
  if (space.names.size() > kMaxActionSpace) {
    return Malformed(fmt::format("\"action_space\" has {} actions; at most {} are allowed",
                                 space.names.size(), kMaxActionSpace));
  }
  auto actions = looptree::ParseActions(space.names);
  if (!actions) {
    return Malformed(fmt::format("\"action_space\"[{}]: {}", *actions.error().action_index,
                                 actions.error().message));
  }
  space.actions = *std::move(actions);
  return space;
}

}  // namespace

std::expected<ReplayRequest, Failure> ParseReplayRequest(std::string_view line) {
  const auto object = ParseJsonLine(line, {.nesting = kMaxNesting, .values = kMaxValues});
  if (!object) return Malformed(object.error());
  if (!object->is_object()) {
    return Malformed(fmt::format("a line must be one JSON object, not {}", object->type_name()));
  }
  Draft draft;
  for (const auto& [key, value] : object->items()) {
    const auto* known = std::ranges::find(kKeys, key, &Key::name);
    if (known == kKeys.end()) return UnknownKey(key);
    LF_TRY_VOID(known->read(value, key, draft));
  }
  if (!draft.has_source) return Malformed("a line must have \"uri\" or \"ir\"");
  LF_TRY(draft.request.action_space, MakeSpace(draft));
  draft.request.rules = draft.rules.value_or(RuleSet::kStructural);
  // The older features imply the rules of their version.
  if (draft.request.look.features == FeatureLayout::kAgent58 &&
      draft.rules != RuleSet::kStructural) {
    draft.request.rules = RuleSet::kLoopNest58;
  }
  return std::move(draft.request);
}

}  // namespace loopfleet::client
