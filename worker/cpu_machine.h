#pragma once
// CpuMachine: the Machine (machine.h) of kernels that run on the cores of this host.

#include <memory>

#include "worker/backend/backend.h"
#include "worker/child_programs.h"
#include "worker/machine.h"
#include "worker/worker_config.h"

namespace loopfleet::worker {

// All of it outlives the machine.
std::unique_ptr<Machine> MakeCpuMachine(const WorkerConfig& config, const Backend& backend,
                                        const JobKinds& kinds);

}  // namespace loopfleet::worker
