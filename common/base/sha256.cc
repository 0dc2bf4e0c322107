#include "common/base/sha256.h"

#include <sodium/crypto_hash_sha256.h>

#include <array>

#include "common/base/check.h"

namespace loopfleet {

std::string Sha256Of(std::string_view bytes) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  LF_CHECK(crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size()) == 0,
           "SHA-256 of {} bytes", bytes.size());
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : hash) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace loopfleet
