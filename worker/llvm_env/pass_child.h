#pragma once
// A child that runs passes: holds up to kProgramSlots programs, and walks prefix trees over them
// until its channel is closed.

#include "worker/llvm_env/tree_walk.h"
#include "worker/sandbox/fork_server.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {

ChildProgram PassChildProgram(const PassLimits& limits, Isolation isolation);

}  // namespace loopfleet::worker
