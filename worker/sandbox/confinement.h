#pragma once
// Confinement: the rights and resources that a child gives up before it does anything for a job.
// Called in the child, right after the fork.

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace loopfleet::worker {

struct ChildLimits {
  // Both in addition to what the child starts with. Shared memory counts towards the second one
  // only.
  std::uint64_t private_bytes = std::uint64_t{2} << 30;
  std::uint64_t address_space_bytes = std::uint64_t{256} << 30;
  std::uint32_t open_files = 64;
  // The longest file that the child may write, memory files included, in bytes; 0: none.
  std::uint64_t file_bytes = 0;
  std::optional<int> cpu_core;  // the only core that the child runs on; none: any
};

enum class ChildRole : std::uint8_t {
  kCompiler,
  kReference,  // computes reference outputs
  kVerifier,   // runs kernels once, away from the timing slot
  kExecutor,   // times kernels, on the timing slot
  kDevice,     // holds a GPU; kernels run there and cannot reach this process
  kPasses,     // runs LLVM passes on programs from elsewhere
  kProfiler,   // runs kernels on the timing slot, and interrupts them to see where they are
};
inline constexpr ChildRole kLastChildRole = ChildRole::kProfiler;
inline constexpr bool RunsKernels(ChildRole role) {
  return role == ChildRole::kVerifier || role == ChildRole::kExecutor ||
         role == ChildRole::kProfiler;
}
// What it works on comes from outside, and it needs nothing of its user's.
inline constexpr bool LosesPrivileges(ChildRole role) {
  return RunsKernels(role) || role == ChildRole::kPasses;
}
// It may fork. Its filter cannot tell the forks from other processes, so it may signal none of
// them; it leads a process group, by which the fork server ends them.
inline constexpr bool MayFork(ChildRole role) { return role == ChildRole::kPasses; }
std::string_view ChildRoleName(ChildRole role);  // "compiler"

// Closes all descriptors but `channel_fd` (standard streams lead to /dev/null; children that run no
// kernels keep stderr), makes the child end with its parent, and lowers its limits: memory, no core
// file, the length of files, few descriptors. A child that runs kernels or passes also loses its
// environment, its working directory and all rights of root: it becomes another user, or, where no
// other user exists (a container, a user namespace), the same one without capabilities. Returns the
// new number of the channel's descriptor.
Result<int> Confine(ChildRole role, const ChildLimits& limits, int channel_fd, int parent_pid);

// Forbids this process to write to files from now on, whatever its limits allowed.
Status ForbidWriting();

// The processor time that this process may still use before the system ends it: a second line of
// defence in case the daemon cannot watch the clock. The system counts the time of all its threads
// together.
struct ProcessorTime {
  std::uint64_t wall_seconds = 0;
  std::uint32_t threads = 1;  // that may run at the same time
  std::uint64_t seconds() const { return wall_seconds * threads; }
  friend bool operator==(const ProcessorTime&, const ProcessorTime&) = default;
};
void LimitProcessorTime(const ProcessorTime& time);

// The same for a caller that sets the limit many times a second. Setting it takes three system
// calls, so it is set one second higher than asked for and left alone for that second. Belongs to
// one thread.
class ProcessorTimeLimit {
 public:
  // Allows `time` from `now` on, and up to one second's use more.
  void Renew(const ProcessorTime& time, Instant now);

 private:
  ProcessorTime granted_{};
  Instant granted_at_{};
};

// For std::set_new_handler and the like: exits with kExitOutOfMemory, which the daemon recognises.
[[noreturn]] void ExitOutOfMemory();

}  // namespace loopfleet::worker
