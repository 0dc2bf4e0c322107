#pragma once
// Uuid: 128 random bits that name a client, a request or a worker, so that no authority has to
// assign names.

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace loopfleet {

struct Uuid {
  std::array<std::uint8_t, 16> bytes{};

  static Uuid Random();                                    // from the operating system
  static std::optional<Uuid> Parse(std::string_view hex);  // 32 hexadecimal digits
  std::string ToString() const;                            // 32 lower-case hexadecimal digits

  bool is_nil() const { return *this == Uuid{}; }
  friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

}  // namespace loopfleet
