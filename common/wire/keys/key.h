#pragma once
// Curve25519 keys as used by CURVE (https://rfc.zeromq.org/spec/26), and their text form: 40
// characters of Z85 for 32 bytes.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace loopfleet::wire {

inline constexpr std::size_t kKeyBytes = 32;
inline constexpr std::size_t kKeyTextBytes = 40;

struct PublicKey {
  std::array<std::uint8_t, kKeyBytes> bytes{};

  // kInvalid: not 40 characters of Z85.
  static Result<PublicKey> Parse(std::string_view z85);
  std::string ToText() const;
  // The first 8 characters of the text, for logs.
  std::string Fingerprint() const;
  friend auto operator<=>(const PublicKey&, const PublicKey&) = default;
};

// Overwritten on destruction. Never logged.
class SecretKey {
 public:
  SecretKey() = default;
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey();

  static Result<SecretKey> Parse(std::string_view z85);
  std::string ToText() const;
  PublicKey PublicHalf() const;
  const std::array<std::uint8_t, kKeyBytes>& bytes() const { return bytes_; }

 private:
  std::array<std::uint8_t, kKeyBytes> bytes_{};
};

struct KeyPair {
  PublicKey public_key;
  SecretKey secret_key;

  static KeyPair Generate();  // from the operating system's randomness
};

// kInvalid: the installed ZeroMQ library is too old to be trusted with keys, or has no CURVE.
Status CheckCurveSupport();

}  // namespace loopfleet::wire

template <>
struct std::hash<loopfleet::wire::PublicKey> {
  std::size_t operator()(const loopfleet::wire::PublicKey& key) const noexcept {
    return std::hash<std::string_view>{}(
        {reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size()});
  }
};
