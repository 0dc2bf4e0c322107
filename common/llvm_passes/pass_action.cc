#include "common/llvm_passes/pass_action.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/llvm_passes/pass_tables.h"

namespace loopfleet::passes {
namespace {

constexpr std::array kSpaceNames = {std::string_view("PassesAll"), std::string_view("Passes19"),
                                    std::string_view("PassesPipelines")};

constexpr std::array kPipelineActions = {
    PassAction{"-O0", "default<O0>", ActionKind::kPipeline},
    PassAction{"-O1", "default<O1>", ActionKind::kPipeline},
    PassAction{"-O2", "default<O2>", ActionKind::kPipeline},
    PassAction{"-O3", "default<O3>", ActionKind::kPipeline},
    PassAction{"-Os", "default<Os>", ActionKind::kPipeline},
    PassAction{"-Oz", "default<Oz>", ActionKind::kPipeline},
};

// Takes the text up to `end` from the front of `rest`.
std::string_view TakeField(std::string_view& rest, char end) {
  const std::string_view field = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(rest.size(), field.size() + 1));
  return field;
}

ActionKind KindOf(std::string_view name) {
  if (name == "same") return ActionKind::kSame;
  if (name == "renamed") return ActionKind::kRenamed;
  if (name == "substitute") return ActionKind::kSubstitute;
  LF_CHECK(name == "noop", "actions.tsv has the kind '{}'", name);
  return ActionKind::kNoop;
}

std::vector<PassAction> ReadTable() {
  std::vector<PassAction> actions;
  std::string_view rest = ActionsText();
  TakeField(rest, '\n');  // the header
  while (!rest.empty()) {
    std::string_view line = TakeField(rest, '\n');
    const std::string_view index = TakeField(line, '\t');
    LF_CHECK(index == std::to_string(actions.size()), "actions.tsv has the index '{}'", index);
    const std::string_view flag = TakeField(line, '\t');
    const std::string_view text = TakeField(line, '\t');
    actions.push_back({.flag = flag, .text = text, .kind = KindOf(TakeField(line, '\t'))});
  }
  return actions;
}

std::vector<PassAction> DistinctOf(std::span<const PassAction> all) {
  std::vector<PassAction> distinct;
  std::ranges::copy_if(all, std::back_inserter(distinct), [&](const PassAction& action) {
    const bool has_original =
        action.kind == ActionKind::kSubstitute &&
        std::ranges::any_of(all, [&](const PassAction& other) {
          return other.text == action.text && other.kind != ActionKind::kSubstitute;
        });
    return action.kind != ActionKind::kNoop && !has_original;
  });
  return distinct;
}

}  // namespace

std::string_view ActionSpaceName(ActionSpace space) {
  return kSpaceNames.at(static_cast<std::size_t>(space));
}

std::optional<ActionSpace> ParseActionSpace(std::string_view name) {
  const auto found = std::ranges::find(kSpaceNames, name);
  if (found == kSpaceNames.end()) return std::nullopt;
  return static_cast<ActionSpace>(found - kSpaceNames.begin());
}

std::span<const PassAction> ActionsOf(ActionSpace space) {
  static const std::vector<PassAction> all = ReadTable();
  static const std::vector<PassAction> distinct = DistinctOf(all);
  switch (space) {
    case ActionSpace::kAll: return all;
    case ActionSpace::kDistinct: return distinct;
    case ActionSpace::kPipelines: return kPipelineActions;
  }
  LF_CHECK(false, "space {}", static_cast<int>(space));
}

const PassAction* FindAction(std::string_view flag) {
  for (const ActionSpace space : {ActionSpace::kAll, ActionSpace::kPipelines}) {
    const auto actions = ActionsOf(space);
    const auto found = std::ranges::find(actions, flag, &PassAction::flag);
    if (found != actions.end()) return &*found;
  }
  return nullptr;
}

}  // namespace loopfleet::passes
