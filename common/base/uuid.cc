#include "common/base/uuid.h"

#include <fmt/format.h>

#include "common/base/random.h"

namespace loopfleet {
namespace {

std::optional<std::uint8_t> HexDigit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

}  // namespace

Uuid Uuid::Random() {
  Uuid uuid;
  FillWithOsRandomness(uuid.bytes);
  return uuid;
}

std::optional<Uuid> Uuid::Parse(std::string_view hex) {
  Uuid uuid;
  if (hex.size() != 2 * uuid.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    const auto high = HexDigit(hex[2 * i]);
    const auto low = HexDigit(hex[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    uuid.bytes[i] = static_cast<std::uint8_t>(*high << 4 | *low);
  }
  return uuid;
}

std::string Uuid::ToString() const {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace loopfleet
