#pragma once
// KernelEmitter: emits a KernelPlan as one LLVM function, already vectorised and register-blocked,
// so that no IR pass is needed. A kernel that asks for unrolling is emitted twice
// (worker/lowering/unroller.h). docs/LOWERING.md says what each loop becomes.

#include "worker/lowering/annotation_effects.h"
#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/vector_shape.h"

namespace llvm {
class Module;
}

namespace loopfleet::worker {

// Adds the function kKernelSymbol to `module`. Returns what became of the annotations.
AnnotationEffects EmitKernel(const KernelPlan& plan, const VectorShape& shape,
                             llvm::Module& module);

}  // namespace loopfleet::worker
