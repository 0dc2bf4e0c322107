#pragma once
// The text files of this folder, built in.

#include <string_view>

namespace loopfleet::passes {

// actions.tsv: a header line, then index, flag, canonical text, kind, and a column that is not used
// here.
std::string_view ActionsText();
// raw_passes.txt: a canonical text without parameters on each line.
std::string_view RawPassesText();

}  // namespace loopfleet::passes
