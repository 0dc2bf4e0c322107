#pragma once
// GpuDaemon: the worker daemon for a CUDA device. Uses the same fork server and service as the CPU
// worker (worker/coordinator_link/service.h), with a device child in place of the children that run
// kernels on this host.

#include "common/base/result.h"
#include "common/job/hardware_facts.h"
#include "worker/gpu/device/gpu_probe.h"
#include "worker/worker_config.h"

namespace loopfleet::worker {

// The hardware recorded with each measurement. `host`: the facts of the host.
HardwareFacts GpuHardware(const GpuProbe& probe, const HardwareFacts& host);

// A GpuWorker (worker/daemon.h). The process must have one thread. kNotFound, with what to do: no
// driver or no such device. kUnavailable: the device cannot be used, or was given up after repeated
// faults.
Status RunGpuWorker(const WorkerConfig& config);

}  // namespace loopfleet::worker
