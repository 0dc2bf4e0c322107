#pragma once
// GpuDaemon: a worker on a CUDA device: the same fork server, session and service as on the CPU
// (worker/coordinator_link/service.h), with a child that has the device in the place of those that
// run code here.

#include "common/base/result.h"
#include "common/job/hardware_facts.h"
#include "worker/gpu/device/gpu_probe.h"
#include "worker/worker_config.h"

namespace loopfleet::worker {

// What a row says that it was measured on. `host` is what the host says of itself.
HardwareFacts GpuHardware(const GpuProbe& probe, const HardwareFacts& host);

// A GpuWorker (worker/daemon.h). The process must have one thread. kNotFound: no driver or no such
// device, and what to do; kUnavailable: it cannot be used, or was given up after repeated faults.
Status RunGpuWorker(const WorkerConfig& config);

}  // namespace loopfleet::worker
