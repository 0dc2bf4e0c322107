#pragma once
// KernelEmitter: emits a KernelPlan as one LLVM function, already vectorised and register-blocked,
// so that no IR pass is needed. docs/LOWERING.md says what each loop becomes.

#include <set>

#include "common/looptree/tree/loop_tree.h"
#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/vector_shape.h"

namespace llvm {
class Module;
}

namespace loopfleet::worker {

// Adds the function kKernelSymbol to `module`. Returns the loops whose annotation changed the code.
std::set<looptree::TreeRef> EmitKernel(const KernelPlan& plan, const VectorShape& shape,
                                       llvm::Module& module);

}  // namespace loopfleet::worker
