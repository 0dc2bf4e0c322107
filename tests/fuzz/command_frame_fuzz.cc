// Bytes as a frame from a coordinator to a worker: a typed refusal, or a message that survives
// encoding and decoding.

#include <string>
#include <variant>

#include "common/base/check.h"
#include "common/wire/codec/codec.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loopfleet;
  const auto message = wire::DecodeWorkerCommand({reinterpret_cast<const char*>(data), size});
  if (!message) {
    LF_CHECK(!message.error().message.empty(), "its message");
    return 0;
  }
  if (std::holds_alternative<wire::UnknownMember>(*message)) return 0;  // never encoded
  const std::string frame = wire::Encode(*message);
  const auto again = wire::DecodeWorkerCommand(frame);
  LF_CHECK(again.has_value(), "its own frame is refused: {}", again.error().message);
  LF_CHECK(wire::Encode(*again) == frame, "the frame changed");
  return 0;
}
