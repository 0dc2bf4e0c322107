#pragma once
// What a child gives up before it does anything for a job. Called in the child, right after the
// fork.

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace loopfleet::worker {

struct ChildLimits {
  // Both beyond what it starts with. Shared memory counts towards the second one only.
  std::uint64_t private_bytes = std::uint64_t{2} << 30;
  std::uint64_t address_space_bytes = std::uint64_t{256} << 30;
  std::uint32_t open_files = 64;
  // The longest file that it may write, one in memory included.
  std::uint64_t file_bytes = 0;
  std::optional<int> cpu_core;  // runs nowhere else
};

enum class ChildRole : std::uint8_t {
  kCompiler,
  kReference,  // computes what outputs must be
  kVerifier,   // runs kernels once, away from the timing slot
  kExecutor,   // times them, on it
  kDevice,     // holds a GPU, on which kernels run: what they can reach there is not this process
};
inline constexpr ChildRole kLastChildRole = ChildRole::kDevice;
inline constexpr bool RunsKernels(ChildRole role) {
  return role == ChildRole::kVerifier || role == ChildRole::kExecutor;
}
std::string_view ChildRoleName(ChildRole role);  // "compiler"

// Keeps `channel_fd` alone of all descriptors (standard streams lead to /dev/null; a compiler may
// still write to stderr), ends with its parent, and lowers limits: memory, no core file, no
// writing to files unless they say otherwise, few descriptors. What runs kernels also loses its
// environment, its working directory and all rights of root: it is another user, or, where there is
// no other one (a container, a user namespace), the same one without capabilities.
// Returns the number that the channel's descriptor has now.
Result<int> Confine(ChildRole role, const ChildLimits& limits, int channel_fd, int parent_pid);

// From here on this process writes to no file, whatever its limits said.
Status ForbidWriting();

// The processor time that this process may still use before the system ends it: a second line of
// defence for when the daemon cannot watch the clock. The system counts what all of its threads use
// together.
struct ProcessorTime {
  std::uint64_t wall_seconds = 0;
  std::uint32_t threads = 1;  // that may run at the same time meanwhile
  std::uint64_t seconds() const { return wall_seconds * threads; }
  friend bool operator==(const ProcessorTime&, const ProcessorTime&) = default;
};
void LimitProcessorTime(const ProcessorTime& time);

// The same for who asks many times a second: setting the limit takes three system calls, so it is
// set for a second more than was asked for, and left alone meanwhile. Belongs to one thread.
class ProcessorTimeLimit {
 public:
  // This much may be used from `now` on, and what a second can use besides.
  void Renew(const ProcessorTime& time, Instant now);

 private:
  ProcessorTime granted_{};
  Instant granted_at_{};
};

// For std::set_new_handler and its like: ends this process in a way that its parent understands.
[[noreturn]] void GiveUpForWantOfMemory();

}  // namespace loopfleet::worker
