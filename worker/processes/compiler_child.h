#pragma once
// The main loop of a compiler child: receives trees as IR text and replies with linked kernels or
// failures, until its channel is closed.

#include "kernel/channel.h"
#include "kernel/kernel.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {

struct CompilerChildOptions {
  std::uint64_t time_limit_s = 0;  // processor time of one compilation
  Isolation isolation = Isolation::kProcess;
};
// Returns the exit code.
int RunCompilerChild(Channel& channel, Compiler& compiler, CodeLinker& linker,
                     const CompilerChildOptions& options);

}  // namespace loopfleet::worker
