#include "common/wire/codec/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "common/base/utf8.h"

namespace loopfleet::wire {
namespace {

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
