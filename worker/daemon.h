#pragma once
// The worker daemon as a function, so that test builds can run it with another backend.

#include "worker/backend.h"
#include "worker/worker_config.h"

namespace loopfleet::worker {

// Builds every part, prints the ready line and runs until it is drained; returns the exit code. The
// process must have one thread.
int RunWorker(const WorkerConfig& config, const Backend& backend);

// The same from a command line: all that a main() has to do.
int WorkerMain(int argc, const char* const* argv, const Backend& backend);

}  // namespace loopfleet::worker
