#pragma once
// CodeHash: identifies the code that was measured. It tells results of different code apart and
// recognises the same code when it is compiled again.

#include <string>
#include <string_view>

namespace loopfleet::worker {

// XXH3-128 of Kernel::object: 32 lower-case hexadecimal digits.
std::string CodeHash(std::string_view object);

}  // namespace loopfleet::worker
