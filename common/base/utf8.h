#pragma once
// Where the characters of UTF-8 text begin and end.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace loopfleet {

// The length in bytes of the character that starts at `i`; 0 if none does. The ranges of the second
// byte are those of RFC 3629, section 4.
inline std::size_t CharacterLength(std::string_view text, std::size_t i) {
  const auto byte_at = [text](std::size_t k) { return static_cast<std::uint8_t>(text[k]); };
  const std::uint8_t first = byte_at(i);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) {
    length = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    length = 3;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  }
  if (length == 0 || text.size() - i < length) return 0;
  if (byte_at(i + 1) < low || byte_at(i + 1) > high) return 0;
  for (std::size_t k = 2; k < length; ++k) {
    if ((byte_at(i + k) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace loopfleet
