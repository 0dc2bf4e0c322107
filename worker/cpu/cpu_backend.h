#pragma once
// The CPU as a device of a worker: CpuCompiler and Linker behind the recipes of
// worker/backend/backend.h.

#include "worker/backend/backend.h"

namespace loopfleet::worker {

// Aborts in make_compiler if LLVM has no code generator for this host: the build is broken then.
Backend CpuBackend();

}  // namespace loopfleet::worker
