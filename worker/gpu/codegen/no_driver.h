#pragma once
// NoDriver: keeps NVIDIA's driver out of a process. nvJitLink opens libcuda.so.1 and calls cuInit
// each time it links something, which opens files and devices: forbidden where job code is
// compiled. So before such a process gives up its rights it opens, by the driver's name, a library
// of a few functions that know of no device. Whoever asks the loader for libcuda.so.1 from then on
// gets that one, without a system call.

#include <cstdint>

#include "common/base/result.h"

namespace loopfleet::worker {

// The library comes from inside this program by way of a file in memory: what a process must be
// allowed to write that opens it.
inline constexpr std::uint64_t kNoDriverBytes = std::uint64_t{64} << 10;

// For the rest of this process' life. kInvalid: a driver has been opened here before. kSystem: the
// library cannot be opened, and why.
Status OpenNoDriver();

}  // namespace loopfleet::worker
