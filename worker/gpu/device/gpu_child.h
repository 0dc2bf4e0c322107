#pragma once
// GpuChild: the device child. Opens the driver at its first request, holds the device's primary
// context, runs and times kernels on request, and ends when its channel closes. It runs no job code
// on this host: a faulty kernel runs on the device, in separate memory. After a sticky CUDA error
// it reports itself lost and is replaced. Single-threaded.

#include <chrono>

#include "kernel/channel.h"
#include "worker/gpu/device/gpu_canary.h"

namespace loopfleet::worker {

struct GpuChildOptions {
  int ordinal = 0;
  std::chrono::milliseconds run_limit{10'000};  // for one run of a kernel
  GpuCanary canary;
};

// Returns the child's exit code.
int RunGpuChild(Channel& channel, const GpuChildOptions& options);

}  // namespace loopfleet::worker
