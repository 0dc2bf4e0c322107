#pragma once
// NoDriver: keeps NVIDIA's driver out of a process. nvJitLink opens libcuda.so.1 and calls cuInit
// at each link, which opens files and devices: forbidden where job code is compiled. So before such
// a process drops its rights, it opens a small library under the driver's name that reports no
// device. From then on the loader returns that library for libcuda.so.1, without a system call.

#include <cstdint>

#include "common/base/result.h"

namespace loopfleet::worker {

// The library is embedded in this program and opened from a memory file. A process that opens it
// must be allowed to write this many bytes.
inline constexpr std::uint64_t kNoDriverBytes = std::uint64_t{64} << 10;

// Lasts until the process ends. kInvalid: a driver is already open in this process. kSystem: the
// library cannot be opened, with the reason.
Status OpenNoDriver();

}  // namespace loopfleet::worker
