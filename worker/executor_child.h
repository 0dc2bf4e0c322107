#pragma once
// What runs in an executor child: links kernels, runs them and times them, until the channel ends.
// Buffers live in memory that the daemon shares: inputs read-only, the rest in an arena.

#include "worker/backend.h"
#include "worker/channel.h"

namespace loopfleet::worker {

// Returns the exit code.
int RunExecutorChild(Channel channel, const Backend& backend);

}  // namespace loopfleet::worker
