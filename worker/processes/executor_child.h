#pragma once
// What runs in an executor child: runs kernels and times them, until the channel ends. Their code
// is in the code arena, which it can execute and not write; their buffers are in memory that the
// daemon shares: inputs read-only, the rest in arenas.

#include <vector>

#include "worker/sandbox/channel.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {

struct ExecutorChildOptions {
  ChildRole role = ChildRole::kExecutor;  // one that runs kernels
  Isolation isolation = Isolation::kProcess;
  // What kernels' parallel loops run on, the one that the child itself runs on first; none: that
  // one. Their threads are started before the child gives up the right to start any.
  std::vector<int> cores;
};

// Returns the exit code.
int RunExecutorChild(Channel& channel, const ExecutorChildOptions& options);

}  // namespace loopfleet::worker
