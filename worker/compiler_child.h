#pragma once
// What runs in a compiler child: trees in as IR text, linked kernels or failures out, until the
// channel ends.

#include "worker/channel.h"
#include "worker/kernel.h"

namespace loopfleet::worker {

// Returns the exit code. `time_limit_s` bounds the processor time of one compilation.
int RunCompilerChild(Channel channel, Compiler& compiler, CodeLinker& linker,
                     std::uint64_t time_limit_s);

}  // namespace loopfleet::worker
