#pragma once
// CpuIsa: what a CPU kernel's code may consist of.

#include <cstdint>

namespace loopfleet::worker {

// Which vector instructions kernels may use, or another processor altogether. Anything but kHost is
// for reading, tests and comparisons.
enum class CpuIsa : std::uint8_t { kHost, kAvx512, kAvx2, kBaseline, kAArch64 };

}  // namespace loopfleet::worker
