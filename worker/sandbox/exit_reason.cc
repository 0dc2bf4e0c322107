#include "worker/sandbox/exit_reason.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>

#include "common/base/check.h"
#include "worker/sandbox/last_words.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {
namespace {

using Cause = ExitReason::Cause;

// A child whose channel is closed is about to end, unless it closed it on purpose.
constexpr std::chrono::seconds kEndGrace{1};
constexpr std::chrono::seconds kReapTimeout{10};

std::string SignalText(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  const char* const text = ::sigdescr_np(signal);
  return fmt::format("SIG{} ({})", name != nullptr ? name : std::to_string(signal),
                     text != nullptr ? text : "unknown signal");
}

std::string CallText(int number) { return number < 0 ? "" : ": " + SystemCallName(number); }

ExitReason FromStatus(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGXCPU) return {.cause = Cause::kTimeout};
    // The daemon did not send it, and no child may send it to itself (syscall_filter.cc). It came
    // from the out-of-memory killer, or from another process on this host.
    if (signal == SIGKILL) return {.cause = Cause::kMemory};
    if (signal == SIGSYS) return {.cause = Cause::kForbidden, .number = -1};
    return {.cause = Cause::kSignal, .number = signal};
  }
  const int code = WEXITSTATUS(status);
  if (code == kExitOutOfMemory) return {.cause = Cause::kMemory};
  if (code == kExitForbiddenCall) return {.cause = Cause::kForbidden, .number = -1};
  return {.cause = Cause::kExit, .number = code};
}

}  // namespace

std::string_view RestartReason(Cause cause) {
  switch (cause) {
    case Cause::kTimeout: return "timeout";
    case Cause::kMemory: return "memory";
    case Cause::kSignal:
    case Cause::kExit: return "crash";
    case Cause::kJunk: return "junk";
    case Cause::kForbidden: return "violation";
    case Cause::kNoChild: return "none";
  }
  LF_CHECK(false, "cause {}", static_cast<int>(cause));
}

std::vector<std::string> RestartReasons() {
  return {"timeout", "memory", "crash", "junk", "violation", "none"};
}

ExitReason EndChild(ChildProcess& child, ErrorKind error) {
  const auto in = [](Nanos duration) {
    return Instant(std::chrono::steady_clock::now()) + duration;
  };
  if (error == ErrorKind::kClosed) {
    const Result<int> status = child.WaitUntilEnded(in(kEndGrace));
    if (status) return FromStatus(*status);
    if (status.error().kind == ErrorKind::kClosed) {
      return {.cause = Cause::kNoChild, .message = "the fork server process ended"};
    }
  }
  child.Kill();
  // Waiting keeps the next child from overlapping with this one. If the child had ended by itself,
  // and the fork server was slow to report it, the status says so now; SIGKILL means that this
  // function ended it.
  const Result<int> status = child.WaitUntilEnded(in(kReapTimeout));
  const bool ended_itself = status && !(WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL);
  if (error == ErrorKind::kClosed && ended_itself) return FromStatus(*status);
  return {.cause = error == ErrorKind::kTimeout ? Cause::kTimeout : Cause::kJunk};
}

ExitReason EndChild(ChildProcess& child, const ForbiddenCall& call) {
  child.Kill();
  static_cast<void>(child.WaitUntilEnded(Instant(std::chrono::steady_clock::now()) + kReapTimeout));
  return {.cause = Cause::kForbidden, .number = call.system_call};
}

ExitReason EndChild(ChildProcess& child, const Crashed& crashed) {
  child.Kill();
  return {.cause = Cause::kSignal, .number = crashed.signal};
}

Failure ToCompileFailure(const ExitReason& end, std::chrono::milliseconds limit) {
  switch (end.cause) {
    case Cause::kTimeout:
      return {.code = FailureCode::kCompileTimeout,
              .message = fmt::format("compiling took longer than {} ms", limit.count())};
    case Cause::kMemory:
      return {.code = FailureCode::kCompileOom, .message = "the compiler ran out of memory"};
    case Cause::kSignal:
      return {.code = FailureCode::kCompileError,
              .message = fmt::format("the compiler was killed by {}", SignalText(end.number)),
              .signal = end.number};
    case Cause::kExit:
      return {.code = FailureCode::kCompileError,
              .message = fmt::format("the compiler ended with exit code {}", end.number)};
    case Cause::kJunk:
      return {.code = FailureCode::kCompileError,
              .message = "the compiler's answer could not be read"};
    case Cause::kForbidden:
      return {.code = FailureCode::kSandboxViolation,
              .message = "the compiler made a forbidden system call" + CallText(end.number)};
    case Cause::kNoChild:
      return {.code = FailureCode::kDeviceFault,
              .message = "this worker has no compiler process: " + end.message};
  }
  LF_CHECK(false, "cause {}", static_cast<int>(end.cause));
}

Failure ToReferenceFailure(const ExitReason& end, std::chrono::milliseconds limit) {
  if (end.cause == Cause::kTimeout) {
    // Not LIMIT_FLOPS, which is final: under less load the host may finish in time.
    return {.code = FailureCode::kUnstableTiming,
            .message = fmt::format("computing the reference output took longer than {} ms on "
                                   "this host, and unverified kernels are not timed",
                                   limit.count())};
  }
  if (end.cause == Cause::kMemory) {
    return {.code = FailureCode::kRunOom,
            .message = "not enough memory to compute the reference output"};
  }
  return {.code = FailureCode::kDeviceFault,
          .message = fmt::format(
              "computing what the output must be failed ({}{}) {}", RestartReason(end.cause),
              end.cause == Cause::kForbidden ? CallText(end.number) : "", end.message)};
}

Failure ToRunFailure(const ExitReason& end, std::chrono::milliseconds limit) {
  switch (end.cause) {
    case Cause::kTimeout:
      return {.code = FailureCode::kRunTimeout,
              .message = fmt::format("the kernel ran longer than {} ms", limit.count())};
    case Cause::kMemory:
      return {.code = FailureCode::kRunOom,
              .message = "there was no memory for the kernel, or the system ended it (SIGKILL)"};
    case Cause::kSignal:
      return {.code = FailureCode::kRunCrash,
              .message = fmt::format("the kernel was killed by {}", SignalText(end.number)),
              .signal = end.number};
    case Cause::kExit:
      return {.code = FailureCode::kRunCrash,
              .message = fmt::format("the executor ended with exit code {} instead of answering",
                                     end.number)};
    case Cause::kJunk:
      return {.code = FailureCode::kRunCrash, .message = "the executor's answer could not be read"};
    case Cause::kForbidden:
      return {.code = FailureCode::kSandboxViolation,
              .message = "the kernel made a forbidden system call" + CallText(end.number)};
    case Cause::kNoChild:
      return {.code = FailureCode::kDeviceFault,
              .message = "this worker has no executor process: " + end.message};
  }
  LF_CHECK(false, "cause {}", static_cast<int>(end.cause));
}

}  // namespace loopfleet::worker
