#pragma once
// CpuIsa: the instruction set that a CPU kernel may use.

#include <cstdint>

namespace loopfleet::worker {

// The vector instructions that kernels may use, or another processor altogether. Every value but
// kHost is for people, tests and comparisons.
enum class CpuIsa : std::uint8_t { kHost, kAvx512, kAvx2, kBaseline, kAArch64, kWasm32 };

}  // namespace loopfleet::worker
