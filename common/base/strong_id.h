#pragma once
// StrongId: an integer that cannot be mixed up with another kind of integer.

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <functional>

namespace loopfleet {

template <class Tag>
struct StrongId {
  std::uint64_t value = 0;  // 0 is "none": real ids start at 1

  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
};

}  // namespace loopfleet

template <class Tag>
struct std::hash<loopfleet::StrongId<Tag>> {
  std::size_t operator()(loopfleet::StrongId<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};

template <class Tag>
struct fmt::formatter<loopfleet::StrongId<Tag>> : fmt::formatter<std::uint64_t> {
  auto format(loopfleet::StrongId<Tag> id, fmt::format_context& context) const {
    return fmt::formatter<std::uint64_t>::format(id.value, context);
  }
};
