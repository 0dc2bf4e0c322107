// Bytes as a key file: refused with a reason, or a key that survives formatting and parsing.

#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/wire/keys/key_file.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loopfleet::wire;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto open = ParsePublicKeyFile(text, Role::kClient);
  if (open) {
    const auto again = ParsePublicKeyFile(FormatPublicKeyFile(*open), Role::kWorker);
    LF_CHECK(again.has_value() || open->name.empty(), "its own text is refused");
    LF_CHECK(!again || (again->key == open->key && again->role == open->role &&
                        again->name == open->name),
             "the key changed");
  } else {
    LF_CHECK(!open.error().message.empty(), "its reason");
  }
  const auto secret = ParseSecretKeyFile(text, Role::kClient);
  LF_CHECK(!open || !secret, "a file is public and secret");
  if (secret) {
    LF_CHECK(secret->keys.secret_key.PublicHalf() == secret->keys.public_key, "two keys");
  } else {
    LF_CHECK(!secret.error().message.empty(), "its reason");
  }
  return 0;
}
