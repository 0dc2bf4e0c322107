#pragma once
// Labels that no worker may claim: its hardware gives it `device=`, `isa=` and `host=`, and the
// coordinator gives it `key=`, the name of the key it came with.

#include <algorithm>
#include <array>
#include <string_view>

namespace loopfleet::wire {

inline constexpr std::string_view kKeyLabel = "key=";
inline constexpr std::array<std::string_view, 4> kHardwareLabels = {
    "device=", "isa=", "host=", kKeyLabel};

constexpr bool IsHardwareLabel(std::string_view label) {
  return std::ranges::any_of(kHardwareLabels,
                             [&](std::string_view own) { return label.starts_with(own); });
}

}  // namespace loopfleet::wire
