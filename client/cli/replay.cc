#include "client/cli/replay.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/exit_code.h"
#include "client/cli/line_reader.h"
#include "common/base/result.h"
#include "common/base/suggestion.h"
#include "common/job/failure.h"
#include "common/looptree/action.h"
#include "common/looptree/features.h"
#include "common/looptree/key.h"
#include "common/looptree/text.h"
#include "common/looptree/walk.h"

namespace loopfleet::client {
namespace {

using Json = nlohmann::ordered_json;
using looptree::Action;
using looptree::AgentWalk;
using looptree::Benchmark;
using looptree::Dialect;
using looptree::FeatureLayout;
using looptree::RuleSet;
using looptree::SimpleWalk;
using looptree::TreeRef;

template <class T>
using Parsed = std::expected<T, Failure>;

constexpr std::size_t kMaxLineBytes = 1 << 20;
constexpr int kMaxNesting = 4;  // a request needs 2
// A job is held to looptree::Limits::actions; here only one line's time and answer are at stake.
constexpr std::size_t kMaxActions = 4096;
constexpr std::size_t kMaxStepBytes = 16 << 20;  // of the trees of every step together

std::unexpected<Failure> Malformed(std::string message) {
  return std::unexpected(Failure{.code = FailureCode::kMalformed, .message = std::move(message)});
}

// A rejection of the language as a failure of the line.
template <class T>
Parsed<T> Lift(looptree::Checked<T> checked) {
  if (!checked) return std::unexpected(ToFailure(checked.error()));
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return *std::move(checked);
  }
}

struct Request {
  looptree::Source source;
  std::vector<Action> actions;
  bool every_step = false;
  std::optional<RuleSet> rules;
  std::optional<std::vector<std::string>> action_space;
  FeatureLayout features = FeatureLayout::kAgent20;
  bool merge_all_first = false;
  std::int64_t start_cursor = 0;
  std::optional<std::vector<std::string>> observations;

  bool Wants(std::string_view observation) const {
    return !observations || std::find(observations->begin(), observations->end(), observation) !=
                                observations->end();
  }
};

constexpr std::array<std::string_view, 10> kKeys = {
    "uri",          "ir",       "actions",         "every_step",   "rules",
    "action_space", "features", "merge_all_first", "start_cursor", "observations"};

constexpr std::array<std::string_view, 5> kSimpleObservations = {"loop_tree", "action_state",
                                                                 "mode", "thread", "tree_key"};
constexpr std::array<std::string_view, 8> kAgentObservations = {
    "loop_tree",  "cursor",       "legal_actions",    "ir",
    "flop_count", "loops_tensor", "stride_histogram", "tree_key"};

// The original's sixteen, and the fourteen of the older version with 58 features.
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

Parsed<std::vector<std::string>> Strings(const Json& value, std::string_view key) {
  if (!value.is_array()) return Malformed(fmt::format("\"{}\" must be an array of strings", key));
  std::vector<std::string> strings;
  for (const Json& item : value) {
    if (!item.is_string()) {
      return Malformed(fmt::format("\"{}\"[{}] must be a string", key, strings.size()));
    }
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

Parsed<bool> Bool(const Json& value, std::string_view key) {
  if (!value.is_boolean()) return Malformed(fmt::format("\"{}\" must be true or false", key));
  return value.get<bool>();
}

// The position of `value` among `names`.
Parsed<std::size_t> OneOf(const Json& value, std::string_view key,
                          std::span<const std::string_view> names) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const auto at = std::find(names.begin(), names.end(), text);
  if (at == names.end()) {
    return Malformed(fmt::format("\"{}\" must be one of {}{}", key, fmt::join(names, ", "),
                                 NearestSuffix(text, names)));
  }
  return static_cast<std::size_t>(at - names.begin());
}

Parsed<void> ParseEntry(const std::string& key, const Json& value, Request& request) {
  constexpr std::array<std::string_view, 2> kRules = {"structural", "loop_nest"};
  constexpr std::array<std::string_view, 2> kFeatures = {"agent20", "agent58"};
  if (key == "uri" || key == "ir") {
    if (!value.is_string()) return Malformed(fmt::format("\"{}\" must be a string", key));
    if (key == "uri") {
      request.source = looptree::BenchmarkUri{value.get<std::string>()};
    } else {
      request.source = looptree::IrText{value.get<std::string>()};
    }
  } else if (key == "actions") {
    LF_TRY(const auto names, Strings(value, key));
    LF_TRY(request.actions, Lift(looptree::ParseActions(names)));
  } else if (key == "every_step") {
    LF_TRY(request.every_step, Bool(value, key));
  } else if (key == "rules") {
    LF_TRY(const std::size_t rules, OneOf(value, key, kRules));
    request.rules = rules == 0 ? RuleSet::kStructural : RuleSet::kLoopNest;
  } else if (key == "action_space") {
    LF_TRY(request.action_space, Strings(value, key));
  } else if (key == "features") {
    LF_TRY(const std::size_t layout, OneOf(value, key, kFeatures));
    request.features = layout == 0 ? FeatureLayout::kAgent20 : FeatureLayout::kAgent58;
  } else if (key == "merge_all_first") {
    LF_TRY(request.merge_all_first, Bool(value, key));
  } else if (key == "start_cursor") {
    if (!value.is_number_integer()) return Malformed("\"start_cursor\" must be a whole number");
    request.start_cursor = value.get<std::int64_t>();
  } else if (key == "observations") {
    LF_TRY(request.observations, Strings(value, key));
  } else {
    return Malformed(
        fmt::format("unknown key \"{}\"{}", key.substr(0, 60), NearestSuffix(key, kKeys)));
  }
  return {};
}

Parsed<Json> ParseJson(const std::string& text) {
  bool too_deep = false;
  const auto bound = [&](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > kMaxNesting;
    return depth <= kMaxNesting;
  };
  try {
    Json json = Json::parse(text, bound);
    if (too_deep) return Malformed("arrays or objects are nested too deeply");
    return json;
  } catch (const Json::exception& error) {
    return Malformed(error.what());
  }
}

Parsed<Request> ParseRequest(const std::string& text) {
  LF_TRY(const Json json, ParseJson(text));
  if (!json.is_object()) return Malformed("a line must be one JSON object");
  Request request;
  for (const auto& [key, value] : json.items()) LF_TRY_VOID(ParseEntry(key, value, request));
  if (json.contains("uri") == json.contains("ir")) {
    return Malformed("a line must have either \"uri\" or \"ir\"");
  }
  if (request.actions.size() > kMaxActions) {
    return std::unexpected(Failure{.code = FailureCode::kLimitActions,
                                   .message = fmt::format("{} actions; at most {} are allowed",
                                                          request.actions.size(), kMaxActions)});
  }
  return request;
}

Parsed<void> CheckObservations(const Request& request, std::span<const std::string_view> valid) {
  if (!request.observations) return {};
  for (const std::string& name : *request.observations) {
    if (std::find(valid.begin(), valid.end(), name) != valid.end()) continue;
    return Malformed(fmt::format("unknown observation \"{}\"{}; valid: {}", name.substr(0, 60),
                                 NearestSuffix(name, valid), fmt::join(valid, ", ")));
  }
  return {};
}

Parsed<Json> ReplaySimple(const Request& request, const Benchmark& benchmark) {
  LF_TRY_VOID(CheckObservations(request, kSimpleObservations));
  SimpleWalk walk(benchmark);
  Json states = Json::array();
  for (std::size_t i = 0; i < request.actions.size(); ++i) {
    auto applied = walk.Apply(request.actions[i]);
    if (!applied) {
      applied.error().action_index = static_cast<std::uint32_t>(i);
      return std::unexpected(ToFailure(applied.error()));
    }
    if (request.every_step) states.push_back(walk.ActionState());
  }
  LF_TRY(const auto tree, Lift(walk.Tree()));
  Json out = Json::object();
  if (request.Wants("loop_tree")) {
    out["loop_tree"] =
        looptree::TreeText(tree, {.dialect = Dialect::kSimple, .target = benchmark.target});
  }
  if (request.Wants("action_state")) out["action_state"] = walk.ActionState();
  if (request.Wants("mode"))
    out["mode"] = walk.mode() == SimpleWalk::Mode::kSize ? "size" : "select";
  if (request.Wants("thread")) out["thread"] = walk.thread();
  if (request.every_step) out["action_states"] = std::move(states);
  if (request.Wants("tree_key")) out["tree_key"] = looptree::KeyOf(tree).ToString();
  return out;
}

struct NamedAction {
  std::string name;
  Action action;
};

Parsed<std::vector<NamedAction>> ActionSpace(const Request& request) {
  const std::vector<std::string> names =
      request.action_space.value_or(DefaultActionSpace(request.features));
  auto actions = looptree::ParseActions(names);
  if (!actions) {
    return Malformed(fmt::format("\"action_space\"[{}]: {}", *actions.error().action_index,
                                 actions.error().message));
  }
  std::vector<NamedAction> space;
  for (std::size_t i = 0; i < names.size(); ++i) space.push_back({names[i], (*actions)[i]});
  return space;
}

Json LegalActions(const AgentWalk& walk, const std::vector<NamedAction>& space) {
  Json legal = Json::array();
  for (const NamedAction& named : space) {
    if (walk.IsLegal(named.action)) legal.push_back(named.name);
  }
  return legal;
}

std::string AgentText(const AgentWalk& walk) {
  return looptree::TreeText(walk.tree(), {.dialect = Dialect::kAgent, .cursor = walk.cursor()});
}

Parsed<AgentWalk> StartWalk(const Request& request, Benchmark benchmark) {
  RuleSet rules = request.rules.value_or(RuleSet::kStructural);
  if (request.features == FeatureLayout::kAgent58 && request.rules != RuleSet::kStructural) {
    rules = RuleSet::kLoopNest58;
  }
  if (request.merge_all_first) {
    AgentWalk merging(benchmark, rules);
    LF_TRY_VOID(Lift(merging.MergeAll()));
    benchmark.start = merging.tree();
  }
  const auto nodes = benchmark.start.nodes();
  const std::int64_t cursor = request.start_cursor;
  const bool is_loop =
      cursor >= 0 && cursor < static_cast<std::int64_t>(nodes.size()) &&
      nodes[static_cast<std::size_t>(cursor)].kind == looptree::TreeNode::Kind::kLoop;
  if (!is_loop && cursor != 0) {
    return Malformed(fmt::format("\"start_cursor\" {} is no loop of the tree", cursor));
  }
  return AgentWalk(benchmark, rules, static_cast<TreeRef>(cursor));
}

Parsed<Json> ReplayAgent(const Request& request, const Benchmark& benchmark) {
  LF_TRY_VOID(CheckObservations(request, kAgentObservations));
  LF_TRY(const auto space, ActionSpace(request));
  LF_TRY(AgentWalk walk, StartWalk(request, benchmark));
  Json steps = Json::array();
  std::size_t step_bytes = 0;
  for (const Action& action : request.actions) {
    const bool legal = walk.Apply(action).has_value();
    if (!request.every_step) continue;
    std::string text = AgentText(walk);
    step_bytes += text.size();
    if (step_bytes > kMaxStepBytes) {
      return std::unexpected(Failure{
          .code = FailureCode::kLimitActions,
          .message =
              fmt::format("the trees of every step have more than {} bytes", kMaxStepBytes)});
    }
    steps.push_back(Json{{"action", looptree::ActionName(action)},
                         {"legal", legal},
                         {"cursor", walk.cursor()},
                         {"loop_tree", std::move(text)},
                         {"legal_actions", LegalActions(walk, space)}});
  }
  const looptree::LoopTree& tree = walk.tree();
  Json out = Json::object();
  if (request.Wants("loop_tree")) out["loop_tree"] = AgentText(walk);
  if (request.Wants("cursor")) out["cursor"] = walk.cursor();
  if (request.Wants("legal_actions")) out["legal_actions"] = LegalActions(walk, space);
  if (request.Wants("ir")) out["ir"] = looptree::IrTextOf(tree);
  if (request.Wants("flop_count")) out["flop_count"] = looptree::FlopCount(tree.program());
  if (request.Wants("loops_tensor")) {
    out["loops_tensor"] = looptree::LoopsTensor(tree, walk.cursor(), request.features);
  }
  if (request.Wants("stride_histogram")) {
    out["stride_histogram"] = looptree::StrideHistogram(tree, request.features);
  }
  if (request.every_step) out["steps"] = std::move(steps);
  if (request.Wants("tree_key")) out["tree_key"] = looptree::KeyOf(tree).ToString();
  return out;
}

Parsed<Json> ReplayLine(const std::string& text) {
  LF_TRY(const Request request, ParseRequest(text));
  LF_TRY(const Benchmark benchmark, Lift(looptree::OpenBenchmark(request.source)));
  if (benchmark.dialect == Dialect::kSimple) return ReplaySimple(request, benchmark);
  return ReplayAgent(request, benchmark);
}

Json ErrorOf(const Failure& failure) {
  Json error{{"code", InfoOf(failure.code).name}, {"message", failure.message}};
  error["action_index"] = failure.action_index ? Json(*failure.action_index) : Json(nullptr);
  return Json{{"error", std::move(error)}};
}

}  // namespace

int RunReplay(std::istream& in, std::ostream& out) {
  int exit_code = kExitOk;
  LineReader reader(in, kMaxLineBytes);
  while (const auto line = reader.Next()) {
    if (line->blank) continue;
    Parsed<Json> answer = Json();
    if (line->text.size() > kMaxLineBytes) {
      answer =
          Malformed(fmt::format("line {} has more than {} bytes", line->number, kMaxLineBytes));
    } else {
      answer = ReplayLine(line->text);
    }
    if (!answer) {
      exit_code = kExitFailed;
      answer = ErrorOf(answer.error());
    }
    // Error messages may quote bytes that are not UTF-8.
    out << answer->dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
  return exit_code;
}

}  // namespace loopfleet::client
