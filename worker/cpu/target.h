#pragma once
// What a processor is to LLVM, and what a kernel may use of it.

#include <memory>

#include "common/base/result.h"
#include "worker/cpu/cpu_isa.h"
#include "worker/lowering/vector_shape.h"

namespace llvm {
class LLVMTargetMachine;
}

namespace loopfleet::worker {

// A target machine for the host that uses no instructions beyond `isa`, or for the other processor
// that it names.
Result<std::unique_ptr<llvm::LLVMTargetMachine>> MakeTargetMachine(CpuIsa isa);

VectorShape ShapeOf(const llvm::LLVMTargetMachine& machine);

}  // namespace loopfleet::worker
