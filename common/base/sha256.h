#pragma once
// SHA-256 (FIPS 180-4): names content that comes from outside, where a ContentKey could be forged.

#include <string>
#include <string_view>

namespace loopfleet {

std::string Sha256Of(std::string_view bytes);  // 64 lower-case hexadecimal digits

// Whether a text from outside can be such a hash. Then it can be the name of a file.
constexpr bool IsSha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace loopfleet
