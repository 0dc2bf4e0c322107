#include "common/looptree/actions/action.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/base/result.h"
#include "common/base/suggestion.h"
#include "common/base/trim.h"
#include "common/looptree/program/number_text.h"

namespace loopfleet::looptree {
namespace {

struct NamedAction {
  std::string_view name;
  Action action;
};

// An action prints as its first name here.
const std::array kNamed = {
    NamedAction{"toggle_mode", ToggleMode{}},
    NamedAction{"toggle_thread", ToggleThread{}},
    NamedAction{"split", IdleSplit{}},
    NamedAction{"up", Up{}},
    NamedAction{"down", Down{}},
    NamedAction{"swap_up", SwapUp{}},
    NamedAction{"swap_down", SwapDown{}},
    NamedAction{"merge", Merge{}},
    NamedAction{"merge_all", MergeAllLoops{}},
    NamedAction{"unroll", Unroll{}},
    NamedAction{"vectorize", Vectorize{}},
    NamedAction{"undo", Undo{}},
    NamedAction{"undo_action", Undo{}},
    NamedAction{"dummy", Dummy{}},
};
constexpr std::string_view kSplitPrefix = "split_";
constexpr std::int64_t kMostSplit = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::vector<std::string_view> UsualActionNames() {
  std::vector<std::string_view> names;
  for (const NamedAction& named : kNamed) names.push_back(named.name);
  for (const std::string_view split :
       {"split_2", "split_4", "split_5", "split_8", "split_16", "split_32", "split_64", "split_128",
        "split_256", "split_512", "split_1024"}) {
    names.push_back(split);
  }
  return names;
}

std::string ActionName(const Action& action) {
  if (const auto* split = std::get_if<Split>(&action)) {
    return fmt::format("{}{}", kSplitPrefix, split->factor);
  }
  for (const NamedAction& named : kNamed) {
    if (named.action.index() == action.index()) return std::string(named.name);
  }
  return "";
}

std::vector<std::string> ActionNames(std::span<const Action> actions) {
  std::vector<std::string> names;
  names.reserve(actions.size());
  for (const Action& action : actions) names.push_back(ActionName(action));
  return names;
}

Checked<Action> ParseAction(std::string_view name) {
  for (const NamedAction& named : kNamed) {
    if (named.name == name) return named.action;
  }
  if (name.starts_with(kSplitPrefix)) {
    const std::string_view text = name.substr(kSplitPrefix.size());
    const auto factor = ParseInteger(text);
    if (factor && *factor >= 2) return Split{*factor};
    const bool is_too_large = !factor && !text.empty() && text[0] != '0' &&
                              text.find_first_not_of("0123456789") == std::string_view::npos;
    if (factor || is_too_large) {
      return Reject(
          RejectionCode::kInvalidAction,
          fmt::format("action {}: a split factor is from 2 to {}; nearest: {}{}", Quoted(name),
                      kMostSplit, kSplitPrefix, is_too_large ? kMostSplit : 2));
    }
  }
  const auto candidates = UsualActionNames();
  return Reject(RejectionCode::kInvalidAction,
                fmt::format("unknown action {}{}", Quoted(name), NearestSuffix(name, candidates)));
}

Checked<std::vector<Action>> ParseActions(std::span<const std::string> names) {
  std::vector<Action> actions;
  actions.reserve(names.size());
  for (const std::string& name : names) {
    auto action = ParseAction(name);
    if (!action) {
      action.error().action_index = static_cast<std::uint32_t>(actions.size());
      return std::unexpected(std::move(action).error());
    }
    actions.push_back(*action);
  }
  return actions;
}

Checked<std::vector<Action>> ParseActionList(std::string_view text) {
  std::vector<std::string> names;
  if (Trimmed(text).empty()) return std::vector<Action>{};
  for (const std::string_view part : SplitText(text, ',')) names.emplace_back(Trimmed(part));
  return ParseActions(names);
}

}  // namespace loopfleet::looptree
