#pragma once
// The passes of a job: as flags, ids or raw texts in the request; as canonical texts in everything
// that follows.

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/llvm_passes/pass_action.h"

namespace loopfleet::passes {

// Why a sequence is refused: a job's INVALID_ACTION.
struct InvalidPass {
  std::string message;             // one line; names the nearest valid text
  std::uint32_t action_index = 0;  // 0-based
};

// The canonical text of a flag ("-gvn") or of a raw text that CheckPassText allows.
std::expected<std::string, std::string> CanonicalText(std::string_view pass);

// The canonical texts of a sequence, one for each action: nothing is dropped, so the state after
// step k is the same for every way to write the sequence.
std::expected<std::vector<std::string>, InvalidPass> CanonicalTexts(
    std::span<const std::string> sequence);
std::expected<std::vector<std::string>, InvalidPass> CanonicalTexts(
    ActionSpace space, std::span<const std::uint16_t> ids);

// "opt-19 -passes='a,b,c' in.bc -o out.bc": what gives the same module without loopfleet.
std::string CommandLine(std::span<const std::string> texts);

}  // namespace loopfleet::passes
