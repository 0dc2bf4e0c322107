#include "worker/sandbox/last_words.h"

#include <cstring>

#include "kernel/byte_codec.h"

namespace loopfleet::worker {
namespace {

void EncodeLastWord(LastWordTag tag, std::int32_t number, char* bytes) {
  static_assert(kLastWordBytes == sizeof tag + sizeof number);
  bytes[0] = static_cast<char>(tag);
  std::memcpy(bytes + sizeof tag, &number, sizeof number);
}

}  // namespace

void EncodeForbiddenCall(std::int32_t system_call, char* bytes) {
  EncodeLastWord(LastWordTag::kForbiddenCall, system_call, bytes);
}

void EncodeCrashed(std::int32_t signal, char* bytes) {
  EncodeLastWord(LastWordTag::kCrashed, signal, bytes);
}

std::optional<ForbiddenCall> DecodeForbiddenCall(std::string_view bytes) {
  ByteReader reader(bytes);
  const auto tag = reader.Get<std::uint8_t>();
  const ForbiddenCall call{.system_call = reader.Get<std::int32_t>()};
  if (!reader.AtEnd() || tag != static_cast<std::uint8_t>(LastWordTag::kForbiddenCall)) {
    return std::nullopt;
  }
  return call;
}

}  // namespace loopfleet::worker
