// Bytes as a frame from a client: a typed refusal, or a request that survives encoding and decoding
// and whose jobs replay to a tree or a typed rejection.

#include <string>
#include <string_view>
#include <variant>

#include "common/base/check.h"
#include "common/looptree/actions/walk.h"
#include "common/wire/codec/codec.h"
#include "tests/fuzz/fuzz_target.h"

namespace loopfleet {
namespace {

// A message holds up to 4,096 jobs; only the first ones are replayed.
constexpr std::size_t kJobsReplayed = 4;

void CheckJob(const JobSpec& job) {
  const auto replayed = looptree::Replay(
      job.source, job.actions,
      {.rules = job.rules, .on_illegal = job.on_illegal, .merge_all_first = job.merge_all_first});
  if (replayed) return;
  const auto& rejection = replayed.error();
  LF_CHECK(!rejection.message.empty(), "its message");
  if (rejection.action_index) {
    LF_CHECK(*rejection.action_index < job.actions.size(), "action {}", *rejection.action_index);
  }
}

void CheckRequest(const wire::ClientRequest& request) {
  const std::string frame = wire::Encode(request);
  const auto again = wire::DecodeClientRequest(frame);
  LF_CHECK(again.has_value(), "its own frame is refused: {}", again.error().failure.message);
  LF_CHECK(wire::Encode(*again) == frame, "the frame changed");
  const auto* submit = std::get_if<wire::SubmitJobs>(&request.message);
  if (submit == nullptr) return;
  LF_CHECK(wire::ContentDigest(*submit) ==
               wire::ContentDigest(std::get<wire::SubmitJobs>(again->message)),
           "the digest changed");
  for (std::size_t i = 0; i < submit->jobs.size() && i < kJobsReplayed; ++i) {
    CheckJob(submit->jobs[i]);
  }
}

}  // namespace
}  // namespace loopfleet

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loopfleet;
  const std::string_view frame(reinterpret_cast<const char*>(data), size);
  const auto request = wire::DecodeClientRequest(frame);
  if (!request) {
    LF_CHECK(!request.error().failure.message.empty(), "its message");
    return 0;
  }
  if (std::holds_alternative<wire::UnknownMember>(request->message)) return 0;  // never encoded
  CheckRequest(*request);
  return 0;
}
