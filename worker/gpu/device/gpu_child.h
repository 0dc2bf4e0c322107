#pragma once
// GpuChild: the process that has the device: opens the driver when it is first asked for anything,
// holds the device's primary context, runs and times what it is told to, and ends with its channel.
// It runs no code of a job on this host: what a kernel may do wrong, it does on the device, which
// has its memory apart. An error that CUDA never forgets ends its use: it says so, and is replaced.

#include <chrono>

#include "worker/gpu/device/gpu_canary.h"
#include "worker/sandbox/channel.h"

namespace loopfleet::worker {

struct GpuChildOptions {
  int ordinal = 0;
  std::chrono::milliseconds run_limit{10'000};  // of one run of a kernel
  GpuCanary canary;
};

// Returns the child's exit code.
int RunGpuChild(Channel& channel, const GpuChildOptions& options);

}  // namespace loopfleet::worker
