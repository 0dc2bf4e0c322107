#include "kernel/compile_service.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <span>
#include <utility>
#include <vector>

namespace loopfleet {
namespace {

// A reference may take a minute, and a kernel ten seconds.
constexpr std::chrono::seconds kPatience{120};

const Error kOtherVersion{ErrorKind::kCorrupt, "its reply cannot be read: is it of this version?"};

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

void CompileService::Forget() {
  channel_ = Channel();
  process_.reset();
}

Result<std::string> CompileService::TryAsk(const std::string& request, int memory) {
  LF_TRY_VOID(EnsureStarted());
  const Instant deadline = Instant(std::chrono::steady_clock::now()) + kPatience;
  const std::span<const int> fds(&memory, memory >= 0 ? 1 : 0);
  if (const Status sent = channel_.Send(request, deadline, fds); !sent) {
    Forget();
    return std::unexpected(sent.error());
  }
  Result<std::string> bytes = channel_.Receive(deadline, kMaxCompileReplyBytes);
  if (!bytes) Forget();
  return bytes;
}

Result<std::string> CompileService::AskTwice(const std::string& request, int memory) {
  const bool was_running = process_ && owner_ == ::getpid();
  Result<std::string> reply = TryAsk(request, memory);
  if (!reply && was_running && reply.error().kind == ErrorKind::kClosed) {
    reply = TryAsk(request, memory);
  }
  return reply;
}

ServeReply CompileService::Ask(const ServeRequest& request) {
  const Result<std::string> bytes = AskTwice(Encode(request), -1);
  if (!bytes) return std::unexpected(Lost(bytes.error()));
  if (std::optional<ServeReply> reply = DecodeServeReply(*bytes)) return *std::move(reply);
  Forget();
  return std::unexpected(Lost(kOtherVersion));
}

IsolatedRunReply CompileService::Ask(const IsolatedRunRequest& request, int memory) {
  const Result<std::string> bytes = AskTwice(Encode(request), memory);
  if (!bytes) return std::unexpected(Lost(bytes.error()));
  if (std::optional<IsolatedRunReply> reply = DecodeIsolatedRunReply(*bytes))
    return *std::move(reply);
  Forget();
  return std::unexpected(Lost(kOtherVersion));
}

}  // namespace loopfleet
