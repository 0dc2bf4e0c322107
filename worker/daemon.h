#pragma once
// The worker daemon as a function, so that test builds can run it with another backend.

#include "worker/backend/backend.h"
#include "worker/child_programs.h"
#include "worker/machine.h"
#include "worker/worker_config.h"

namespace loopfleet::worker {

// Builds every part on the machine that the configuration names, prints the ready line and runs
// until drained. Returns the exit code. The process must have one thread.
int RunWorker(const WorkerConfig& config, const Backend& backend, const JobKinds& kinds = {},
              const MachineMaker& make_gpu = nullptr);

// RunWorker with the configuration from a command line: all that a main() has to do.
int WorkerMain(int argc, const char* const* argv, const Backend& backend,
               const JobKinds& kinds = {}, const MachineMaker& make_gpu = nullptr);

}  // namespace loopfleet::worker
