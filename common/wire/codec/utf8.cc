#include "common/wire/codec/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace loopfleet::wire {
namespace {

std::uint8_t ByteAt(std::string_view text, std::size_t i) {
  return static_cast<std::uint8_t>(text[i]);
}

// The length in bytes of the character that starts at `i`; 0 if none does. The ranges of the second
// byte are those of RFC 3629, section 4.
std::size_t CharacterLength(std::string_view text, std::size_t i) {
  const std::uint8_t first = ByteAt(text, i);
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
  if (ByteAt(text, i + 1) < low || ByteAt(text, i + 1) > high) return 0;
  for (std::size_t k = 2; k < length; ++k) {
    if ((ByteAt(text, i + k) & 0xc0) != 0x80) return 0;
  }
  return length;
}

// How many bytes at the beginning are known to be ASCII: a multiple of eight, because nearly all
// texts are ASCII as a whole.
std::size_t AsciiLength(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  std::size_t length = 0;
  for (std::uint64_t word = 0; text.size() - length >= sizeof word; length += sizeof word) {
    std::memcpy(&word, text.data() + length, sizeof word);
    if ((word & kHighBits) != 0) break;
  }
  return length;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  for (std::size_t i = AsciiLength(text); i < text.size();) {
    const std::size_t length = CharacterLength(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string ToUtf8(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes && IsUtf8(text)) return std::string(text);
  std::string out;
  out.reserve(std::min(text.size(), max_bytes));
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = CharacterLength(text, i);
    const std::string_view character = length == 0 ? "?" : text.substr(i, length);
    if (out.size() + character.size() > max_bytes) break;
    out += character;
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

}  // namespace loopfleet::wire
