#include "worker/isa/processor.h"

namespace loopfleet::worker {

// A 32-bit multiplication takes 3 cycles on every core of the last fifteen years; no core folds a
// chain of them, as some do with additions of constants.
const double kCyclesPerStep = 3;

std::string WhyNoKernels() { return ""; }

// The caches are coherent; only the pipeline has to be flushed. Returning from an interrupt is the
// cheapest instruction that does it (cpuid traps in virtual machines).
void FlushInstructionFetch() {
  std::uint64_t scratch;
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // leave the red zone alone
      "movl %%ss, %k0\n\t"
      "pushq %q0\n\t"
      "leaq 8(%%rsp), %q0\n\t"
      "pushq %q0\n\t"
      "pushfq\n\t"
      "movl %%cs, %k0\n\t"
      "pushq %q0\n\t"
      "leaq 1f(%%rip), %q0\n\t"
      "pushq %q0\n\t"
      "iretq\n"
      "1:\n\t"
      "leaq 128(%%rsp), %%rsp"
      : "=&r"(scratch)
      :
      : "memory", "cc");
}

void ResetFloatingPointState() {
  const std::uint32_t usual = 0x1f80;
  asm volatile("ldmxcsr %0\n\tcld" : : "m"(usual) : "cc");
}

// clflushopt takes 3 ns a line (family 6 model 207), clflush up to 200. Processors from before 2015
// lack the former.
void EvictFromCaches(const void* memory, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const bool is_quick = __builtin_cpu_supports("clflushopt") != 0;
  const char* const first = static_cast<const char*>(memory);
  for (std::size_t i = 0; i < bytes; i += kLine) {
    if (is_quick) {
      asm volatile("clflushopt (%0)" : : "r"(first + i) : "memory");
    } else {
      asm volatile("clflush (%0)" : : "r"(first + i) : "memory");
    }
  }
  asm volatile("mfence" : : : "memory");
}

void DependentSteps(std::uint64_t steps) {
  std::uint32_t x = 3;
  for (std::uint64_t i = 0; i < steps; i += 8) {
    asm volatile(
        "imul %0, %0\n\timul %0, %0\n\timul %0, %0\n\timul %0, %0\n\t"
        "imul %0, %0\n\timul %0, %0\n\timul %0, %0\n\timul %0, %0"
        : "+r"(x));
  }
}

Interrupted InterruptedAt(const ucontext_t& context) {
  return {.code = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]),
          .stack = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RSP])};
}

}  // namespace loopfleet::worker
