#include "kernel/compile_service.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <utility>
#include <vector>

namespace loopfleet {
namespace {

// A reference may take a minute, and a kernel ten seconds.
constexpr std::chrono::seconds kPatience{120};

Failure Lost(const Error& error) {
  return {.code = FailureCode::kWorkerLost,
          .message = fmt::format("loopfleet-worker serve: {}", error.message)};
}

}  // namespace

Status CompileService::EnsureStarted() {
  if (process_ && owner_ != ::getpid()) {
    process_.reset();  // the parent's: a forked child can neither end it nor wait for it
    channel_ = Channel();
  }
  if (process_) return {};
  LF_TRY(auto ends, Channel::MakePair());
  std::vector<std::string> argv = {options_.program, "serve", "--threads",
                                   std::to_string(options_.threads)};
  if (!options_.memory.empty()) argv.insert(argv.end(), {"--memory", options_.memory});
  // Not by Ctrl-C: the process decides what that means.
  LF_TRY(process_, Subprocess::Start({.argv = std::move(argv),
                                      .set_environment = {},
                                      .clear_environment_prefixes = {},
                                      .group = Subprocess::Group::kOwn,
                                      .stdin_fd = ends.second.fd()}));
  owner_ = ::getpid();
  channel_ = std::move(ends.first);
  return {};
}

Result<ServeReply> CompileService::TryAsk(const std::string& request) {
  LF_TRY_VOID(EnsureStarted());
  const Instant deadline = Instant(std::chrono::steady_clock::now()) + kPatience;
  const auto lost = [this](Error error) {
    channel_ = Channel();
    process_.reset();
    return std::unexpected(std::move(error));
  };
  if (const Status sent = channel_.Send(request, deadline); !sent) return lost(sent.error());
  const Result<std::string> bytes = channel_.Receive(deadline, kMaxCompileReplyBytes);
  if (!bytes) return lost(bytes.error());
  std::optional<ServeReply> reply = DecodeServeReply(*bytes);
  if (!reply) return lost({ErrorKind::kCorrupt, "its reply cannot be read: is it of this version?"});
  return *std::move(reply);
}

ServeReply CompileService::Ask(const ServeRequest& request) {
  const std::string bytes = Encode(request);
  const bool was_running = process_ && owner_ == ::getpid();
  Result<ServeReply> reply = TryAsk(bytes);
  if (!reply && was_running && reply.error().kind == ErrorKind::kClosed) reply = TryAsk(bytes);
  if (!reply) return std::unexpected(Lost(reply.error()));
  return *std::move(reply);
}

}  // namespace loopfleet
