#include "common/llvm_passes/pass_sequence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "common/base/suggestion.h"
#include "common/llvm_passes/pass_text.h"

namespace loopfleet::passes {

std::expected<std::string, std::string> CanonicalText(std::string_view pass) {
  if (pass.empty()) return std::unexpected("a pass without a name");
  if (!pass.starts_with('-')) return CheckPassText(pass);
  if (const PassAction* action = FindAction(pass)) return std::string(action->text);
  std::vector<std::string_view> flags;
  for (const PassAction& action : ActionsOf(ActionSpace::kAll)) flags.push_back(action.flag);
  return std::unexpected(fmt::format("unknown pass '{}'{}", pass.substr(0, kLongestPassText),
                                     NearestSuffix(pass, flags)));
}

std::expected<std::vector<std::string>, InvalidPass> CanonicalTexts(
    std::span<const std::string> sequence) {
  std::vector<std::string> texts;
  texts.reserve(sequence.size());
  for (const std::string& pass : sequence) {
    auto text = CanonicalText(pass);
    if (!text) {
      return std::unexpected(InvalidPass{.message = std::move(text).error(),
                                         .action_index = static_cast<std::uint32_t>(texts.size())});
    }
    texts.push_back(*std::move(text));
  }
  return texts;
}

std::expected<std::vector<std::string>, InvalidPass> CanonicalTexts(
    ActionSpace space, std::span<const std::uint16_t> ids) {
  const std::span<const PassAction> actions = ActionsOf(space);
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (const std::uint16_t id : ids) {
    if (id >= actions.size()) {
      return std::unexpected(
          InvalidPass{.message = fmt::format("{} has no action {}; its ids are 0 to {}",
                                             ActionSpaceName(space), id, actions.size() - 1),
                      .action_index = static_cast<std::uint32_t>(texts.size())});
    }
    texts.emplace_back(actions[id].text);
  }
  return texts;
}

std::string CommandLine(std::span<const std::string> texts) {
  return fmt::format("opt-19 -passes='{}' in.bc -o out.bc", fmt::join(texts, ","));
}

}  // namespace loopfleet::passes
