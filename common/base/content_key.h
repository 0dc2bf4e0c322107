#pragma once
// ContentKey: 16 bytes that identify content, by its hash.

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace loopfleet {

struct ContentKey {
  std::array<std::uint8_t, 16> bytes{};
  // XXH3-128 of the content: the same on every machine.
  static ContentKey Of(std::string_view content);
  std::string ToString() const;  // 32 lower-case hexadecimal digits
  static std::optional<ContentKey> Parse(std::string_view hex);
  friend auto operator<=>(const ContentKey&, const ContentKey&) = default;
};

}  // namespace loopfleet
