#pragma once
// CodeSampler: where in its code a kernel spends its time. A timer signal interrupts it about once
// a millisecond, at random distances, so that no loop of the kernel keeps step with it, and notes
// the instruction. Needs no rights but that of setting the process's own timer. One in a process;
// used by its first thread, which has to be the only one that does not block SIGALRM.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/base/result.h"

namespace loopfleet::worker {

struct CodeSamples {
  // Bytes from the start of the code: of an instruction that was running or, if it was a function
  // that the kernel had called, of the call. kElsewhere: neither.
  std::vector<std::uint32_t> offsets;
  std::uint64_t runs = 0;
  std::uint64_t processor_ns = 0;  // of this thread, the signals included
  static constexpr std::uint32_t kElsewhere = UINT32_MAX;
};
inline constexpr std::size_t kMostCodeSamples = 16'384;

class CodeSampler {
 public:
  struct Plan {
    std::uint64_t code_address = 0;
    std::uint64_t code_bytes = 0;
    std::uint64_t duration_ns = 0;         // of processor time; at least one run
    std::uint64_t interval_ns = 0;         // between signals, on average
    std::uint64_t runs_between_looks = 1;  // at the clock
  };

  // Blocks SIGALRM for the threads that are started from now on.
  static void ShieldThreads();
  // Once those are started: installs the signal's handler, for this thread.
  static Status Install();

  // Calls `run` until the time is over, or ten times the time on the wall, or kMostCodeSamples are
  // taken.
  static CodeSamples Take(const Plan& plan, const std::function<void()>& run);
};

}  // namespace loopfleet::worker
