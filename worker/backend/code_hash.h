#pragma once
// CodeHash: names the code that was measured, so that a row can be told from one that other code
// gave, and recognised when its code is made again.

#include <string>
#include <string_view>

namespace loopfleet::worker {

// XXH3-128 of Kernel::object: 32 lower-case hexadecimal digits.
std::string CodeHash(std::string_view object);

}  // namespace loopfleet::worker
