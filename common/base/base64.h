#pragma once
// Base64: bytes as text (RFC 4648, with padding).

#include <string>
#include <string_view>

namespace loopfleet {

std::string Base64Of(std::string_view bytes);

}  // namespace loopfleet
