#pragma once
// Labels that a worker has by its hardware, and that nobody can give it: they begin so.

#include <algorithm>
#include <array>
#include <string_view>

namespace loopfleet::wire {

inline constexpr std::array<std::string_view, 3> kHardwareLabels = {"device=", "isa=", "host="};

constexpr bool IsHardwareLabel(std::string_view label) {
  return std::ranges::any_of(kHardwareLabels,
                             [&](std::string_view own) { return label.starts_with(own); });
}

}  // namespace loopfleet::wire
