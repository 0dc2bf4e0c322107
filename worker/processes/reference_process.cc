#include "worker/processes/reference_process.h"

#include <utility>

#include "common/looptree/text/text.h"
#include "worker/processes/child_message.h"

namespace loopfleet::worker {

ReferenceProcess::ReferenceProcess(ForkServer& fork_server, std::chrono::milliseconds limit,
                                   RestartListener on_restart)
    : fork_server_(fork_server), limit_(limit), on_restart_(std::move(on_restart)) {}

Status ReferenceProcess::EnsureChild() {
  if (child_) return {};
  LF_TRY(child_, fork_server_.Spawn(ChildRole::kReference));
  return {};
}

std::expected<std::vector<bool>, Failure> ReferenceProcess::Compute(const looptree::LoopTree& tree,
                                                                    InputSeed seed,
                                                                    const SharedMemory& inputs,
                                                                    const SharedMemory& reference) {
  if (const Status started = EnsureChild(); !started) {
    return std::unexpected(ToReferenceFailure(
        {.cause = ExitReason::Cause::kNoChild, .message = started.error().message}, limit_));
  }
  const Instant deadline = Instant(std::chrono::steady_clock::now()) + limit_;
  const ReferenceRequest request{
      .seed = seed,
      .inputs_size = inputs.bytes().size(),
      .reference_size = reference.bytes().size(),
      .ir = looptree::IrTextOf(tree),
      .time_limit_s =
          static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(limit_).count()) + 1};
  const int fds[] = {inputs.fd(), reference.fd()};
  if (const Status sent = child_->channel().Send(Encode(request), deadline, fds); !sent) {
    return Replaced(EndChild(*child_, sent.error().kind));
  }
  const Result<std::string> bytes = child_->ReceiveReply(deadline, kMaxReferenceReplyBytes);
  if (!bytes) return Replaced(EndChild(*child_, bytes.error().kind));
  const std::optional<ReferenceReply> reply = DecodeReferenceReply(*bytes);
  if (reply && child_->gives_way()) child_.reset();
  if (reply && !reply->refusal.empty()) {
    return std::unexpected(Failure{.code = FailureCode::kUnsupported, .message = reply->refusal});
  }
  if (reply && reply->exact.size() == tree.program().outputs.size()) return reply->exact;
  const std::optional<ForbiddenCall> call = DecodeForbiddenCall(*bytes);
  return Replaced(call ? EndChild(*child_, *call) : EndChild(*child_, ErrorKind::kCorrupt));
}

std::unexpected<Failure> ReferenceProcess::Replaced(const ExitReason& end) {
  child_.reset();
  on_restart_(ChildRole::kReference, end.cause);
  return std::unexpected(ToReferenceFailure(end, limit_));
}

}  // namespace loopfleet::worker
