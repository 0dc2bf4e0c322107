#pragma once
// What runs in a reference child: computes what programs mean, into memory that the daemon shares,
// until the channel ends.

#include "worker/sandbox/channel.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {

// Returns the exit code.
int RunReferenceChild(Channel& channel, Isolation isolation);

}  // namespace loopfleet::worker
