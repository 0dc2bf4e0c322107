#pragma once
// LLVM's view of a processor, and the vector registers that a kernel may use.

#include <memory>

#include "common/base/result.h"
#include "worker/isa/isa_support.h"
#include "worker/lowering/vector_shape.h"

namespace llvm {
class LLVMTargetMachine;
}

namespace loopfleet::worker {

// A target machine for the host limited to the instructions of `isa`, or for the other processor
// that `isa` names. kUnavailable: this build of LLVM cannot generate code for it.
Result<std::unique_ptr<llvm::LLVMTargetMachine>> MakeTargetMachine(CpuIsa isa);

VectorShape ShapeOf(CpuIsa isa);

}  // namespace loopfleet::worker
