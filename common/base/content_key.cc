#include "common/base/content_key.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstddef>
#include <cstring>
#include <iterator>

namespace loopfleet {

ContentKey ContentKey::Of(std::string_view content) {
  XXH128_canonical_t canonical;  // big-endian: the same bytes on every machine
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(content.data(), content.size()));
  ContentKey key;
  static_assert(sizeof canonical.digest == sizeof key.bytes);
  std::memcpy(key.bytes.data(), canonical.digest, key.bytes.size());
  return key;
}

std::string ContentKey::ToString() const {
  std::string text;
  for (const std::uint8_t byte : bytes) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  return text;
}

std::optional<ContentKey> ContentKey::Parse(std::string_view hex) {
  ContentKey key;
  if (hex.size() != 2 * key.bytes.size()) return std::nullopt;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  for (std::size_t i = 0; i < key.bytes.size(); ++i) {
    const int high = digit(hex[2 * i]);
    const int low = digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    key.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return key;
}

}  // namespace loopfleet
