#pragma once
// CoreKernels: small fixed kernels that measure a core, one set for each instruction set
// (core_kernels_*.cc, each compiled for that set alone; call them only on a processor that has it).

#include <cstddef>
#include <cstdint>

namespace loopfleet::worker {

struct CoreKernels {
  // Independent multiply-adds, flop_per_step floating-point operations a step. Enough chains to
  // fill two units of latency 4, which reaches peak arithmetic throughput.
  void (*multiply_adds)(std::uint64_t steps);
  // The same with one operand from the first-level cache.
  void (*multiply_adds_from_cache)(std::uint64_t steps);
  std::uint64_t flop_per_step;
  // Cycles of a step of multiply_adds, on a quiet core with two units that each begin a fused
  // multiply-add of these vectors in every cycle; with an operand from the cache, of a processor's
  // narrowest vectors only (HostCoreProbe). No processor with this instruction set has more units;
  // with one a step takes twice as long (QuietCoreCycles in contention_baseline.h). 0: unknown.
  double least_cycles_per_step;
  // The kernels for vectors of half the width, which every processor with this set can also run;
  // null: none. How much longer a step of wide vectors takes is a property of the processor
  // (DeviceMeter).
  const CoreKernels* narrower;
  // The width of the vectors.
  std::uint32_t vector_bytes;
  // Multiply-adds of which each waits for the one before; null: they are not one instruction.
  void (*dependent_multiply_adds)(std::uint64_t steps);
  // The sum of `count` floats: a stream of reads. `count` is a multiple of 256.
  float (*read)(const float* data, std::size_t count);
  // a[i] = b[i] + s * c[i]: two streams read, one written. `count` as above.
  void (*triad)(float* a, const float* b, const float* c, std::size_t count);
};

namespace core_kernels {
extern const CoreKernels kPortable;
#if defined(__x86_64__)
extern const CoreKernels kAvx2;
extern const CoreKernels kAvx512;
#endif
}  // namespace core_kernels

}  // namespace loopfleet::worker
