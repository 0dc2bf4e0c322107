#pragma once
// The size of a module's machine code.

#include <cstdint>

#include "common/base/result.h"
#include "worker/llvm_env/x86_target.h"

namespace llvm {
class Module;
}

namespace loopfleet::worker {

// The bytes in executable sections of the module's object file. The module stays as it is.
// kInvalid: LLVM makes no object file of it.
Result<std::int64_t> ObjectTextSizeOf(const llvm::Module& module, CodeLevel level);

}  // namespace loopfleet::worker
