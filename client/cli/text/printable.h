#pragma once
// Printable: text of a worker or another client, for a terminal, which control characters would
// steer.

#include <string>
#include <string_view>

namespace loopfleet::client {

// Replaces control characters by '?', but for those of `kept`.
std::string Printable(std::string_view text, std::string_view kept = "");

}  // namespace loopfleet::client
