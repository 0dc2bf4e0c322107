#pragma once
// Raw pass texts: one LLVM pass as `opt-19 -passes=` takes it, with all its nesting written out:
// "function(loop-mssa(licm<allowspeculation>))". An allow list, because LLVM's parser also accepts
// passes that print, crash on purpose, read or write files, or kill the process when they run in
// another nesting.

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace loopfleet::passes {

inline constexpr std::size_t kLongestPassText = 512;

// The text itself, or one line that says why it is refused. Allowed are the passes of actions.tsv
// and of raw_passes.txt in the nesting that stands there, with any parameters, and the pipelines of
// ActionSpace::kPipelines. Whether LLVM knows the parameters is found out when the pass is run.
std::expected<std::string, std::string> CheckPassText(std::string_view text);

}  // namespace loopfleet::passes
