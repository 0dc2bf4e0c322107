#pragma once
// NumberIn: the number that the whole text is, with no blanks and no plus sign, as std::from_chars
// reads it. nullopt for any other text, and for a number that N cannot hold.

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace loopfleet {

template <class N>
std::optional<N> NumberIn(std::string_view text) {
  N number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return number;
}

}  // namespace loopfleet
