#pragma once
// ExitReason: why a child ended before it answered a request, and the failure that follows for the
// job.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/job/failure.h"
#include "worker/sandbox/fork_server.h"
#include "worker/sandbox/last_words.h"

namespace loopfleet::worker {

struct ExitReason {
  enum class Cause : std::uint8_t {
    kTimeout,    // no reply in time, or its processor time was used up; killed
    kMemory,     // an allocation failed, or the system's out-of-memory killer ended it
    kSignal,     // it crashed
    kExit,       // it exited without a reply
    kJunk,       // its reply could not be read; killed
    kForbidden,  // it made a system call that is not allowed
    kNoChild,    // none could be started
  };
  Cause cause = Cause::kExit;
  int number = 0;       // the signal, the exit code, or the system call (-1: unknown)
  std::string message;  // kNoChild: why
};

// The label that a restart is counted under: "timeout", "memory", "crash", "junk",
// "violation", "none".
std::string_view RestartReason(ExitReason::Cause cause);
// Every label.
std::vector<std::string> RestartReasons();

// Establishes why `child` failed with `error` on its channel; the child is dead afterwards.
ExitReason EndChild(ChildProcess& child, ErrorKind error);
// The same after `child` reported that it made a forbidden system call.
ExitReason EndChild(ChildProcess& child, const ForbiddenCall& call);
// The same after `child` reported that a signal ends it. It may still be ending on return.
ExitReason EndChild(ChildProcess& child, const Crashed& crashed);

Failure ToCompileFailure(const ExitReason& end, std::chrono::milliseconds limit);
Failure ToReferenceFailure(const ExitReason& end, std::chrono::milliseconds limit);
Failure ToRunFailure(const ExitReason& end, std::chrono::milliseconds limit);

}  // namespace loopfleet::worker
