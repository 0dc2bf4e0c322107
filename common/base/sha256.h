#pragma once
// SHA-256 (FIPS 180-4): names content that comes from outside, where a ContentKey could be forged.

#include <string>
#include <string_view>

namespace loopfleet {

std::string Sha256Of(std::string_view bytes);  // 64 lower-case hexadecimal digits

}  // namespace loopfleet
