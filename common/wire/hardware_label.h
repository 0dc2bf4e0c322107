#pragma once
// Labels that a worker may not claim: `device=`, `isa=` and `host=` follow from its hardware, and
// the coordinator adds `key=`, the name of the key that the worker connected with.

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
