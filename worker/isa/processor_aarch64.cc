#include "worker/isa/processor.h"

namespace loopfleet::worker {

// An exclusive or of two registers takes one cycle: Arm's optimisation guides say so of every
// Cortex-A and Neoverse core. No core folds a chain of them.
const double kCyclesPerStep = 1;

// Code is written through one address and executed at another (CodeArena). Cleaning one of them
// reaches the other, except in an instruction cache that is indexed by virtual addresses.
std::string WhyNoKernels() {
  std::uint64_t cache_type = 0;
  asm("mrs %0, ctr_el0" : "=r"(cache_type));
  constexpr unsigned kNeedsNoCleaning = 29;  // bit DIC
  constexpr unsigned kIndexing = 14;         // field L1Ip
  constexpr std::uint64_t kByVirtualAddress = 2;
  if ((cache_type >> kNeedsNoCleaning & 1) != 0) return "";
  if ((cache_type >> kIndexing & 3) != kByVirtualAddress) return "";
  return "its instruction cache is indexed by virtual addresses (as in Cortex-A53 and A55), where a"
         " kernel could run the code of another one";
}

void FlushInstructionFetch() { asm volatile("isb" ::: "memory"); }

void ResetFloatingPointState() { asm volatile("msr fpcr, xzr"); }

// Linux lets every process do it.
void EvictFromCaches(const void* memory, std::size_t bytes) {
  constexpr std::size_t kLine = 64;  // or longer
  const char* const first = static_cast<const char*>(memory);
  for (std::size_t i = 0; i < bytes; i += kLine) {
    asm volatile("dc civac, %0" : : "r"(first + i) : "memory");
  }
  asm volatile("dsb sy" : : : "memory");
}

void DependentSteps(std::uint64_t steps) {
  std::uint64_t x = 3;
  const std::uint64_t other = 5;
  for (std::uint64_t i = 0; i < steps; i += 8) {
    asm volatile(
        "eor %0, %0, %1\n\teor %0, %0, %1\n\teor %0, %0, %1\n\teor %0, %0, %1\n\t"
        "eor %0, %0, %1\n\teor %0, %0, %1\n\teor %0, %0, %1\n\teor %0, %0, %1"
        : "+r"(x)
        : "r"(other));
  }
}

Interrupted InterruptedAt(const ucontext_t& context) {
  return {.code = context.uc_mcontext.pc, .stack = context.uc_mcontext.sp};
}

}  // namespace loopfleet::worker
