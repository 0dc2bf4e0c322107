#include "common/llvm_passes/pass_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "common/base/suggestion.h"
#include "common/llvm_passes/pass_action.h"
#include "common/llvm_passes/pass_tables.h"

namespace loopfleet::passes {
namespace {

struct Parts {
  std::string shape;            // the text without its parameters
  std::string_view parameters;  // what stood between < and >
};

Parts Split(std::string_view text) {
  const std::size_t open = text.find('<');
  const std::size_t close = text.rfind('>');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return {.shape = std::string(text), .parameters = {}};
  }
  return {.shape = std::string(text.substr(0, open)) + std::string(text.substr(close + 1)),
          .parameters = text.substr(open + 1, close - open - 1)};
}

std::set<std::string, std::less<>> ReadShapes() {
  std::set<std::string, std::less<>> shapes;
  for (const PassAction& action : ActionsOf(ActionSpace::kAll)) {
    shapes.insert(Split(action.text).shape);
  }
  for (std::string_view rest = RawPassesText(); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    shapes.emplace(line);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return shapes;
}

const std::set<std::string, std::less<>>& Shapes() {
  static const auto shapes = ReadShapes();
  return shapes;
}

// No slash, dot or quote: parameters name no files, and the text can be quoted in a command line.
bool IsParameterText(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '=' || c == ';';
}

// "licm" of "function(loop-mssa(licm))".
std::string_view PassName(std::string_view shape) {
  const std::size_t open = shape.rfind('(');
  const std::string_view name = open == std::string_view::npos ? shape : shape.substr(open + 1);
  return name.substr(0, name.find(')'));
}

std::string Refusal(std::string_view text, std::string_view shape) {
  for (const std::string& known : Shapes()) {
    if (PassName(known) == PassName(shape)) {
      return fmt::format("'{}' is not how this pass is nested; write {}", text, known);
    }
  }
  const std::vector<std::string_view> known(Shapes().begin(), Shapes().end());
  return fmt::format("unknown pass '{}'{}", text, NearestSuffix(shape, known));
}

}  // namespace

std::expected<std::string, std::string> CheckPassText(std::string_view text) {
  if (text.size() > kLongestPassText) {
    return std::unexpected(fmt::format("a pass text of {} characters; at most {} are taken",
                                       text.size(), kLongestPassText));
  }
  const auto pipelines = ActionsOf(ActionSpace::kPipelines);
  if (std::ranges::find(pipelines, text, &PassAction::text) != pipelines.end()) {
    return std::string(text);
  }
  const Parts parts = Split(text);
  if (!Shapes().contains(parts.shape)) return std::unexpected(Refusal(text, parts.shape));
  if (!std::ranges::all_of(parts.parameters, IsParameterText)) {
    return std::unexpected(
        fmt::format("'{}' has parameters with other characters than letters, digits, '-', '=' and "
                    "';'",
                    text));
  }
  // "function<eager-inv>(gvn)" has the shape of an allowed text: parameters follow the pass's name.
  const std::size_t close = text.rfind('>');
  if (close != std::string_view::npos &&
      text.find_first_not_of(')', close + 1) != std::string_view::npos) {
    return std::unexpected(fmt::format("'{}' has parameters before the pass's name", text));
  }
  return std::string(text);
}

}  // namespace loopfleet::passes
