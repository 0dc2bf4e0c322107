#pragma once
// OutsideFunctions: where the C library functions lie that generated code may call. They have other
// addresses in other processes, so code is linked with those of the process that will run it.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace loopfleet {

struct OutsideFunctions {
  static constexpr std::array<std::string_view, 10> kNames = {
      "expf", "logf", "sqrtf", "tanhf", "erff", "sinf", "cosf", "powf", "memcpy", "memset"};
  std::array<std::uint64_t, kNames.size()> addresses{};  // in the order of kNames
  friend bool operator==(const OutsideFunctions&, const OutsideFunctions&) = default;

  static const OutsideFunctions& OfThisProcess();
  // nullopt: generated code may not call it.
  std::optional<std::uint64_t> Find(std::string_view name) const;
};

}  // namespace loopfleet
