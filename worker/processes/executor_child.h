#pragma once
// The main loop of an executor child: runs and times kernels until its channel is closed. Their
// code lies in the code arena, which the child can execute but not write. Their buffers lie in
// memory shared by the daemon: the inputs read-only, the rest in arenas.

#include <vector>

#include "kernel/channel.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {

struct ExecutorChildOptions {
  ChildRole role = ChildRole::kExecutor;  // a role that runs kernels
  Isolation isolation = Isolation::kProcess;
  // Cores for the kernels' parallel loops, the child's own core first. Empty: only its own core.
  // Their threads are started before the child gives up the right to start threads.
  std::vector<int> cores;
};

// Returns the exit code.
int RunExecutorChild(Channel& channel, const ExecutorChildOptions& options);

}  // namespace loopfleet::worker
