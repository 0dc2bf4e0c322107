// Bytes as a frame from a worker: a typed refusal, or a message that survives encoding and decoding
// and whose figures are fit to be stored.

#include <cmath>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/check.h"
#include "common/wire/codec/codec.h"
#include "tests/fuzz/fuzz_target.h"

namespace loopfleet {
namespace {

// Promise I11: a bad measurement never looks like a good one.
void CheckReports(const wire::WorkerMessage& message) {
  const auto* reports = std::get_if<wire::Reports>(&message);
  if (reports == nullptr) return;
  for (const wire::Report& report : reports->reports) {
    if (!report.evaluation.ok()) continue;
    const double elapsed_ns = report.evaluation.measurement().elapsed_ns;
    LF_CHECK(std::isfinite(elapsed_ns) && elapsed_ns > 0, "a time of {} ns", elapsed_ns);
  }
}

}  // namespace
}  // namespace loopfleet

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loopfleet;
  const auto message = wire::DecodeWorkerMessage({reinterpret_cast<const char*>(data), size});
  if (!message) {
    LF_CHECK(!message.error().message.empty(), "its message");
    return 0;
  }
  if (std::holds_alternative<wire::UnknownMember>(*message)) return 0;  // never encoded
  CheckReports(*message);
  const std::string frame = wire::Encode(*message);
  const auto again = wire::DecodeWorkerMessage(frame);
  LF_CHECK(again.has_value(), "its own frame is refused: {}", again.error().message);
  LF_CHECK(wire::Encode(*again) == frame, "the frame changed");
  return 0;
}
