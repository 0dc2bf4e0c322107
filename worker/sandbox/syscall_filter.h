#pragma once
// SyscallFilter: how far kernels and compilers are kept from the rest of the host. The rest of
// confinement (confinement.h) works on every host; this part depends on what the host supports.

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "worker/sandbox/confinement.h"

namespace loopfleet::worker {

enum class Isolation : std::uint8_t {
  kProcess,  // a process of its own, with limits and without rights
  kSeccomp,  // the same, with only the few system calls that its request loop needs
};
// As it stands in every result: "process+rlimits", "seccomp+rlimits".
std::string_view IsolationName(Isolation isolation);

// What this host supports, determined by a short-lived process that installs the filter and makes a
// forbidden call. The calling process must have one thread.
Isolation ProbeIsolation();
// Sanitizers make system calls of their own at any time, so such a build has no filter.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kHasSanitizer = true;
#else
inline constexpr bool kHasSanitizer = false;
#endif

// Called in a child once it has all the threads and private memory that it will need. Ends its
// right to start threads or processes and installs the filter for all of its threads.
//
// A forbidden system call is reported on `channel_fd` as a ForbiddenCall, and the process ends. A
// crash for lack of memory ends it with kExitOutOfMemory. Other crashes end it by their signal,
// which a child that runs kernels first reports as Crashed. A role that may fork keeps that right,
// reports forbidden calls by kExitForbiddenCall only, and aborts with kExitAborted.
Status SealProcess(ChildRole role, Isolation isolation, int channel_fd);

// "socket"; "number N" if libseccomp does not know it.
std::string SystemCallName(std::int32_t number);

}  // namespace loopfleet::worker
