#pragma once
// What only a processor's own instructions do: processor_x86_64.cc and processor_aarch64.cc.
// Another architecture is another such file.

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace loopfleet::worker {

// Why kernels cannot be run on this processor; "": they can.
std::string WhyNoKernels();

// Before a call of code that another processor may have written since this one last fetched from
// its address. (The writer has cleaned the caches: __builtin___clear_cache.)
void FlushInstructionFetch();

// Rounding mode and flags as compiled code expects them: an earlier kernel may have changed them.
void ResetFloatingPointState();

// Writes these bytes back and out of every cache, however large, of every core.
void EvictFromCaches(const void* memory, std::size_t bytes);

// Operations of which each waits for the one before it. They tell the clock, because each takes
// kCyclesPerStep cycles on every processor of the architecture. `steps`: a multiple of 8.
extern const double kCyclesPerStep;
void DependentSteps(std::uint64_t steps);

// Where a signal interrupted this thread.
struct Interrupted {
  std::uint64_t code = 0;   // the address of the next instruction
  std::uint64_t stack = 0;  // the stack pointer
};
Interrupted InterruptedAt(const ucontext_t& context);

}  // namespace loopfleet::worker
