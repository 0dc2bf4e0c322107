#pragma once
// An age as people write it: a whole number and its unit, "90d".

#include <chrono>
#include <string_view>

#include "common/base/result.h"

namespace loopfleet::client {

// Units are s, m, h, d and w; from one second to a hundred years.
// kInvalid: anything else, with the nearest age that can be written.
Result<std::chrono::seconds> ParseAge(std::string_view text);

}  // namespace loopfleet::client
