#pragma once
// PassAction: one of CompilerGym's 124 LLVM actions, by its name and id, and the canonical LLVM 19
// text that it stands for. Equal canonical texts are the same pass: keys and prefixes compare
// texts, never ids or flags.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace loopfleet::passes {

enum class ActionKind : std::uint8_t {
  kSame,        // LLVM 19 has it under the flag's name
  kRenamed,     // under another name
  kSubstitute,  // it is gone; another pass stands in
  kNoop,        // it is gone and nothing stands in
  kPipeline,    // of ActionSpace::kPipelines
};

struct PassAction {
  std::string_view flag;  // "-gvn"
  std::string_view text;  // "function(gvn)"
  ActionKind kind = ActionKind::kSame;
};

// A numbering of actions. An id is an index into ActionsOf.
enum class ActionSpace : std::uint8_t {
  kAll,        // "PassesAll": the 124
  kDistinct,   // "Passes19": the 118 of them that do something and differ from each other
  kPipelines,  // "PassesPipelines": default<O0>, O1, O2, O3, Os, Oz
};
std::string_view ActionSpaceName(ActionSpace space);
std::optional<ActionSpace> ParseActionSpace(std::string_view name);

std::span<const PassAction> ActionsOf(ActionSpace space);
// The action of a flag, in any space; nullptr: there is none.
const PassAction* FindAction(std::string_view flag);

}  // namespace loopfleet::passes
