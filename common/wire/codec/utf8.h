#pragma once
// Checks whether text is UTF-8 and converts it, so that text from a library or a user cannot make a
// message unreadable.

#include <cstddef>
#include <string>
#include <string_view>

namespace loopfleet::wire {

// Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view text);

// `text` with each byte that is not part of UTF-8 replaced by '?', truncated between characters to
// at most `max_bytes`.
std::string ToUtf8(std::string_view text, std::size_t max_bytes);

}  // namespace loopfleet::wire
