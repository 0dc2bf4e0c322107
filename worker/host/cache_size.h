#pragma once
// Parses cache sizes as sysfs writes them.

#include <charconv>
#include <cstdint>
#include <string_view>

namespace loopfleet::worker {

// In bytes: "16K", "2048K", "36M". 0 for anything else.
inline std::uint64_t ParseCacheSize(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest + 1 != end) return 0;
  if (*rest == 'K') return number << 10;
  if (*rest == 'M') return number << 20;
  return 0;
}

}  // namespace loopfleet::worker
