#pragma once
// CpuBackend: the CPU implementation of worker/backend/backend.h, made of CpuCompiler and Linker.

#include "worker/backend/backend.h"

namespace loopfleet::worker {

// make_compiler aborts if LLVM has no code generator for this host: the build is broken.
Backend CpuBackend();

}  // namespace loopfleet::worker
