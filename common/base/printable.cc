#include "common/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "common/base/utf8.h"

namespace loopfleet {
namespace {

// The code point of one character of UTF-8.
std::uint32_t CodePointOf(std::string_view character) {
  std::uint32_t point = static_cast<std::uint8_t>(character[0]);
  if (character.size() > 1) point &= 0x7fU >> character.size();
  for (const char c : character.substr(1))
    point = point << 6 | (static_cast<std::uint8_t>(c) & 0x3f);
  return point;
}

// Whether a terminal shows it, and does nothing else.
bool IsPrintable(std::uint32_t point) {
  struct Range {
    std::uint32_t first, last;
  };
  constexpr Range kNotShown[] = {
      {0, 0x1f},           // controls
      {0x7f, 0x9f},        // controls
      {0xad, 0xad},        // soft hyphen
      {0x34f, 0x34f},      // invisible
      {0x61c, 0x61c},      // direction of writing
      {0x115f, 0x1160},    // invisible
      {0x17b4, 0x17b5},    // invisible
      {0x180b, 0x180f},    // invisible
      {0x200b, 0x200f},    // invisible, direction of writing
      {0x2028, 0x202e},    // ends of lines, direction of writing
      {0x2060, 0x206f},    // invisible, direction of writing
      {0x2800, 0x2800},    // invisible
      {0x3164, 0x3164},    // invisible
      {0xfe00, 0xfe0f},    // variants of the character before
      {0xfeff, 0xfeff},    // byte order mark
      {0xffa0, 0xffa0},    // invisible
      {0xfff0, 0xfffb},    // annotations
      {0xfffe, 0xffff},    // no characters
      {0x1d173, 0x1d17a},  // invisible
      {0xe0000, 0xe0fff}   // tags, variants
  };
  return std::ranges::none_of(kNotShown, [point](const Range& range) {
    return range.first <= point && point <= range.last;
  });
}

}  // namespace

std::string Printable(std::string_view text, std::string_view kept) {
  std::string printable;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = CharacterLength(text, i);
    const std::string_view character = text.substr(i, std::max<std::size_t>(length, 1));
    const bool is_kept = length == 1 && kept.contains(text[i]);
    if (is_kept || (length > 0 && IsPrintable(CodePointOf(character)))) {
      printable += character;
    } else {
      for (const char c : character) {
        fmt::format_to(std::back_inserter(printable), "\\x{:02x}", static_cast<std::uint8_t>(c));
      }
    }
    i += character.size();
  }
  return printable;
}

}  // namespace loopfleet
