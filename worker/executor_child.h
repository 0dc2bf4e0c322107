#pragma once
// What runs in an executor child: runs kernels and times them, until the channel ends. Their code
// is in the code arena, which it can execute and not write; their buffers are in memory that the
// daemon shares: inputs read-only, the rest in arenas.

#include "worker/channel.h"
#include "worker/isolation.h"

namespace loopfleet::worker {

// Returns the exit code. `role` is one that runs kernels.
int RunExecutorChild(Channel channel, ChildRole role, Isolation isolation);

}  // namespace loopfleet::worker
