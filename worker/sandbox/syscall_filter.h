#pragma once
// Isolation: how far kernels and compilers are kept from the rest of the host. The rest of
// confinement (confinement.h) needs nothing of the host; this part may be missing.

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "worker/sandbox/confinement.h"

namespace loopfleet::worker {

enum class Isolation : std::uint8_t {
  kProcess,  // a process of its own, with limits and without rights
  kSeccomp,  // and no system calls but the few that its request loop needs
};
// As it stands in every result: "process+rlimits", "seccomp+rlimits".
std::string_view IsolationName(Isolation isolation);

// What this host offers, found out by confining a process for a moment and having it try. The
// calling process must have one thread.
Isolation ProbeIsolation();

// Called in a child once it has everything it will ever need: threads, memory for its own use. Ends
// its right to start threads or processes and installs the filter, for all of its threads.
//
// A system call that is not allowed is reported on `channel_fd` as a ForbiddenCall, and the process
// ends. A crash for want of memory ends it with kExitOutOfMemory; other crashes end it by their
// signal.
Status SealProcess(ChildRole role, Isolation isolation, int channel_fd);

// "socket"; the number if this library does not know it.
std::string SystemCallName(std::int32_t number);

}  // namespace loopfleet::worker
