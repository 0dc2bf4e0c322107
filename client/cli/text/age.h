#pragma once
// Parses an age such as "90d": a whole number and its unit.

#include <chrono>
#include <string_view>

#include "common/base/result.h"

namespace loopfleet::client {

// Units are s, m, h, d and w; from one second to a hundred years. kInvalid: anything else; the
// message suggests the nearest valid age.
Result<std::chrono::seconds> ParseAge(std::string_view text);

}  // namespace loopfleet::client
