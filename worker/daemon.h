#pragma once
// The worker daemon as a function, so that test builds can run it with another backend.

#include <functional>

#include "common/base/result.h"
#include "worker/backend/backend.h"
#include "worker/child_programs.h"
#include "worker/worker_config.h"

namespace loopfleet::worker {

// Runs a worker on the CUDA device that the configuration names, until it is drained. kNotFound:
// the host lacks what the message names. Empty function: the program has no GPU worker.
using GpuWorker = std::function<Status(const WorkerConfig& config)>;

// Builds every part, prints the ready line and runs until drained. Returns the exit code. The
// process must have one thread.
int RunWorker(const WorkerConfig& config, const Backend& backend, const JobKinds& kinds = {},
              const GpuWorker& gpu = nullptr);

// RunWorker with the configuration from a command line: all that a main() has to do.
int WorkerMain(int argc, const char* const* argv, const Backend& backend,
               const JobKinds& kinds = {}, const GpuWorker& gpu = nullptr);

}  // namespace loopfleet::worker
