#pragma once
// The main loop of a child that runs passes: holds up to kProgramSlots programs, and walks prefix
// trees over them until its channel is closed.

#include "kernel/channel.h"
#include "worker/llvm_env/tree_walk.h"
#include "worker/sandbox/confinement.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {

// For ChildPrograms: `prepare` has to call InitializeX86.
ChildLimits PassChildLimits();
// Returns the exit code.
int RunPassChild(Channel& channel, const PassLimits& limits, Isolation isolation);

}  // namespace loopfleet::worker
