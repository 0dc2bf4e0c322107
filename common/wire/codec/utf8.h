#pragma once
// Whether text is UTF-8, and how to make it so: what a foreign library or a user's bytes say must
// not make a message unreadable.

#include <cstddef>
#include <string>
#include <string_view>

namespace loopfleet::wire {

// Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view text);

// `text` with each byte that is not part of UTF-8 replaced by '?', cut at a character's edge so
// that it is at most `max_bytes` long.
std::string ToUtf8(std::string_view text, std::size_t max_bytes);

}  // namespace loopfleet::wire
