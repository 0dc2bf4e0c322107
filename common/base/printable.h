#pragma once
// Untrusted text, such as a worker's, made safe for a terminal.

#include <string>
#include <string_view>

namespace loopfleet {

// Escapes (\x1b) what does not show on a terminal, or acts on it: control characters but for those
// of `kept`, invisible ones, those that turn the direction of writing, and bytes that are not
// UTF-8.
std::string Printable(std::string_view text, std::string_view kept = "");

}  // namespace loopfleet
