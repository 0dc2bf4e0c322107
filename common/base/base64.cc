#include "common/base/base64.h"

#include <sodium/utils.h>

namespace loopfleet {

std::string Base64Of(std::string_view bytes) {
  constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;
  std::string text(sodium_base64_ENCODED_LEN(bytes.size(), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), kVariant);
  text.pop_back();  // C's end of a string
  return text;
}

}  // namespace loopfleet
