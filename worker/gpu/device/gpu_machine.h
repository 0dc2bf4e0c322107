#pragma once
// GpuMachine: the Machine (worker/machine.h) of a CUDA device, with a device child in place of the
// children that run kernels on this host.

#include <memory>

#include "common/job/hardware_facts.h"
#include "worker/gpu/device/gpu_probe.h"
#include "worker/machine.h"
#include "worker/worker_config.h"

namespace loopfleet::worker {

// The hardware recorded with each measurement. `host`: the facts of the host.
HardwareFacts GpuHardware(const GpuProbe& probe, const HardwareFacts& host);

// A MachineMaker. The machine's errors: kInvalid: as FindIsolation. kNotFound, with what to do: no
// driver or no such device. kUnavailable: the device cannot be used, or was given up after repeated
// faults. `config` outlives it.
std::unique_ptr<Machine> MakeGpuMachine(const WorkerConfig& config);

}  // namespace loopfleet::worker
