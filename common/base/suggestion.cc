#include "common/base/suggestion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "common/base/utf8.h"

namespace loopfleet {
namespace {

// Optimal string alignment distance, with three rolling rows.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

constexpr std::size_t kComparedCharacters = 128;  // longer than any valid name; bounds the work
constexpr std::size_t kQuotedBytes = 60;

std::string Compared(std::string_view text) {
  std::string compared(text.substr(0, kComparedCharacters));
  std::ranges::transform(compared, compared.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return compared;
}

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

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  std::size_t i = 0;
  while (i < std::min(text.size(), kQuotedBytes)) {
    const std::size_t length = CharacterLength(text, i);
    const std::string_view character = text.substr(i, std::max<std::size_t>(length, 1));
    if (length > 0 && IsPrintable(CodePointOf(character))) {
      quoted += character;
    } else {
      for (const char c : character) {
        fmt::format_to(std::back_inserter(quoted), "\\x{:02x}", static_cast<std::uint8_t>(c));
      }
    }
    i += character.size();
  }
  return quoted + (i < text.size() ? "...'" : "'");
}

std::optional<std::string> Nearest(std::string_view text,
                                   std::span<const std::string_view> candidates) {
  const std::string wanted = Compared(text);
  std::optional<std::string> nearest;
  std::size_t nearest_distance = std::max<std::size_t>(2, wanted.size() / 2) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = EditDistance(wanted, Compared(candidate));
    if (distance < nearest_distance) {
      nearest = std::string(candidate);
      nearest_distance = distance;
    }
  }
  return nearest;
}

std::string NearestSuffix(std::string_view text, std::span<const std::string_view> candidates) {
  const auto nearest = Nearest(text, candidates);
  return nearest ? "; nearest: " + *nearest : "";
}

}  // namespace loopfleet
