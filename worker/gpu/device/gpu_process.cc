#include "worker/gpu/device/gpu_process.h"

#include <array>
#include <utility>

namespace loopfleet::worker {
namespace {

Instant Now() { return std::chrono::steady_clock::now(); }

SharedBuffers SharedOf(const SharedMemory& memory, const BufferLayout& layout) {
  return {.size = memory.bytes().size(), .buffers = layout.buffers};
}

}  // namespace

GpuProcess::GpuProcess(ForkServer& fork_server, const Options& options, RestartListener on_restart)
    : fork_server_(fork_server), options_(options), on_restart_(std::move(on_restart)) {}

void GpuProcess::Replace(ExitReason::Cause cause) {
  child_.reset();
  is_checked_ = false;
  on_restart_(ChildRole::kDevice, cause);
}

template <class Reply>
std::expected<Reply, Failure> GpuProcess::Ask(const GpuRequest& request, std::span<const int> fds,
                                              Nanos limit) {
  if (!child_) {
    return std::unexpected(
        Failure{.code = FailureCode::kDeviceFault, .message = "the device child is not running"});
  }
  const Instant deadline = Now() + limit;
  const auto ended = [&](const ExitReason& end) {
    Replace(end.cause);
    return std::unexpected(ToRunFailure(end, options_.run_limit));
  };
  if (const Status sent = child_->channel().Send(Encode(request), deadline, fds); !sent) {
    return ended(EndChild(*child_, sent.error().kind));
  }
  const Result<std::string> bytes = child_->channel().Receive(deadline, kMaxGpuReplyBytes);
  if (!bytes) return ended(EndChild(*child_, bytes.error().kind));
  std::optional<GpuReply> reply = DecodeGpuReply(*bytes);
  if (!reply) return ended(EndChild(*child_, ErrorKind::kCorrupt));
  if (reply->is_lost) {
    // A lost child can only be killed, which also ends a kernel that hangs.
    child_->Kill();
    constexpr std::chrono::seconds kReapTimeout{10};
    static_cast<void>(child_->WaitUntilEnded(Now() + kReapTimeout));
    const bool is_timeout =
        !reply->answer && reply->answer.error().code == FailureCode::kRunTimeout;
    Replace(is_timeout ? ExitReason::Cause::kTimeout : ExitReason::Cause::kSignal);
  }
  if (!reply->answer) return std::unexpected(std::move(reply->answer).error());
  if (auto* answer = std::get_if<Reply>(&*reply->answer)) return std::move(*answer);
  return ended(EndChild(*child_, ErrorKind::kCorrupt));
}

std::expected<void, Failure> GpuProcess::EnsureReady() {
  // An idle child says nothing: it has ended since the last call, which is not the next job's
  // fault.
  if (child_ && child_->channel().IsReadable()) {
    Replace(EndChild(*child_, ErrorKind::kClosed).cause);
  }
  if (child_ && is_checked_) return {};
  if (!child_) {
    Result<ChildProcess> child = fork_server_.Spawn(ChildRole::kDevice);
    if (!child) {
      return std::unexpected(
          Failure{.code = FailureCode::kDeviceFault, .message = child.error().message});
    }
    child_ = *std::move(child);
  }
  auto checked = Ask<GpuDone>(GpuCheckRequest{}, {}, options_.run_limit + options_.patience);
  if (checked) {
    is_checked_ = true;
    return {};
  }
  if (child_) Replace(ExitReason::Cause::kExit);
  // Always DEVICE_FAULT: no job's kernel caused it.
  return std::unexpected(
      Failure{.code = FailureCode::kDeviceFault, .message = std::move(checked).error().message});
}

std::expected<Nanos, Failure> GpuProcess::Run(const GpuCall& call) {
  const std::array fds = {call.workload->inputs.fd(), call.arena->memory().fd()};
  LF_TRY(
      const GpuDone done,
      Ask<GpuDone>(GpuRunRequest{.image = call.image,
                                 .specs = call.specs,
                                 .inputs = SharedOf(call.workload->inputs, call.workload->layout),
                                 .outputs = SharedOf(call.arena->memory(), call.arena->layout())},
                   fds, options_.run_limit + options_.patience));
  return Nanos(done.took_ns);
}

std::expected<DeviceSamples, Failure> GpuProcess::Time(const SamplingPolicy& policy,
                                                       Nanos run_took) {
  const auto longest =
      Nanos(LongestNs(policy, static_cast<std::uint64_t>(std::max(run_took, Nanos{0}).count())));
  return Ask<DeviceSamples>(GpuTimeRequest{.policy = policy}, {},
                            longest + options_.run_limit + options_.patience);
}

std::expected<LaunchTimes, Failure> GpuProcess::TimeLaunches(Nanos run_took) {
  return Ask<LaunchTimes>(
      GpuLaunchesRequest{}, {},
      kMostLongRuns * std::max(run_took, Nanos{0}) + options_.run_limit + options_.patience);
}

}  // namespace loopfleet::worker
