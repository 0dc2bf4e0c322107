#include "worker/processes/compiler_process.h"

#include <utility>

#include "common/looptree/text/text.h"

namespace loopfleet::worker {
CompilerProcess::CompilerProcess(ForkServer& fork_server, std::chrono::milliseconds limit,
                                 RestartListener on_restart)
    : fork_server_(fork_server), limit_(limit), on_restart_(std::move(on_restart)) {}

Status CompilerProcess::EnsureChild() {
  if (child_) return {};
  LF_TRY(child_, fork_server_.Spawn(ChildRole::kCompiler));
  has_answered_ = false;
  return {};
}

std::expected<CompiledKernel, Failure> CompilerProcess::Compile(const looptree::LoopTree& tree,
                                                                const CodeArena::Place& place,
                                                                const CompileOptions& options) {
  return Ask(tree, {.code_address = place.address(),
                    .max_code_bytes = place.size(),
                    .threads = options.threads,
                    .instrumentation = options.instrumentation,
                    .ir = looptree::IrTextOf(tree)});
}

std::expected<CompiledKernel, Failure> CompilerProcess::Compile(const looptree::LoopTree& tree,
                                                                std::uint64_t max_code_bytes) {
  return Ask(tree, {.max_code_bytes = max_code_bytes, .ir = looptree::IrTextOf(tree)});
}

std::expected<CompiledKernel, Failure> CompilerProcess::CompileFor(const looptree::LoopTree& tree,
                                                                   const CompileRequest& request) {
  return Ask(tree, request);
}

std::expected<CompiledKernel, Failure> CompilerProcess::Ask(const looptree::LoopTree& tree,
                                                            const CompileRequest& request) {
  for (;;) {  // twice at most: a new child has answered nothing
    const bool is_worn = child_ && has_answered_;
    std::expected<CompileReply, ExitReason> reply = TryRequest(request);
    if (!reply) {
      if (is_worn && reply.error().cause != ExitReason::Cause::kTimeout) continue;
      return std::unexpected(ToCompileFailure(reply.error(), limit_));
    }
    if (!*reply) return std::unexpected(std::move(*reply).error());
    if (std::optional<Failure> failure = CheckBuffers((*reply)->kernel, tree.program())) {
      return std::unexpected(*std::move(failure));
    }
    return **std::move(reply);
  }
}

std::expected<CompileReply, ExitReason> CompilerProcess::TryRequest(const CompileRequest& request) {
  if (const Status started = EnsureChild(); !started) {
    return std::unexpected(
        ExitReason{.cause = ExitReason::Cause::kNoChild, .message = started.error().message});
  }
  const auto replaced = [&](const ExitReason& end) {
    child_.reset();
    on_restart_(ChildRole::kCompiler, end.cause);
    return std::unexpected(end);
  };
  const Instant deadline = Instant(std::chrono::steady_clock::now()) + limit_;
  if (const Status sent = child_->channel().Send(Encode(request), deadline); !sent) {
    return replaced(EndChild(*child_, sent.error().kind));
  }
  const Result<std::string> bytes = child_->ReceiveReply(deadline, kMaxCompileReplyBytes);
  if (!bytes) return replaced(EndChild(*child_, bytes.error().kind));
  std::optional<CompileReply> reply = DecodeCompileReply(*bytes);
  if (!reply) {
    const std::optional<ForbiddenCall> call = DecodeForbiddenCall(*bytes);
    return replaced(call ? EndChild(*child_, *call) : EndChild(*child_, ErrorKind::kCorrupt));
  }
  has_answered_ = true;
  if (child_->gives_way()) child_.reset();
  return *std::move(reply);
}

}  // namespace loopfleet::worker
