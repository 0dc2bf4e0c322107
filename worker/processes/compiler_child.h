#pragma once
// What runs in a compiler child: trees in as IR text, linked kernels or failures out, until the
// channel ends.

#include "worker/backend/kernel.h"
#include "worker/sandbox/channel.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {

// Returns the exit code. The time limit bounds the processor time of one compilation.
struct CompilerChildOptions {
  std::uint64_t time_limit_s = 0;
  Isolation isolation = Isolation::kProcess;
};
int RunCompilerChild(Channel& channel, Compiler& compiler, CodeLinker& linker,
                     const CompilerChildOptions& options);

}  // namespace loopfleet::worker
