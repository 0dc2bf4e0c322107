#pragma once
// The C files of the dataset small-v0, built in. Each takes no input and prints a checksum.

#include <string_view>

namespace loopfleet::worker {

// "": there is none of this name.
std::string_view SmallProgramSource(std::string_view name);

}  // namespace loopfleet::worker
