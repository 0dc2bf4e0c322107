#pragma once
// The main loop of a reference child: computes the inputs and reference outputs of programs into
// memory shared by the daemon, until its channel is closed.

#include "kernel/channel.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {

// Returns the exit code.
int RunReferenceChild(Channel& channel, Isolation isolation);

}  // namespace loopfleet::worker
