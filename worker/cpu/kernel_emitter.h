#pragma once
// KernelEmitter: emits a KernelPlan as one LLVM function, already vectorised and register-blocked,
// so that no IR pass is needed. A kernel that asks for unrolling is emitted twice
// (worker/lowering/unroller.h). docs/LOWERING.md says what each loop becomes.

#include <cstdint>

#include "kernel/profile_map.h"
#include "worker/cpu/plan_places.h"
#include "worker/lowering/annotation_effects.h"
#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/vector_shape.h"

namespace llvm {
class Module;
}

namespace loopfleet::worker {

// What an instrumented copy gets. Nothing of it changes how the rest is emitted.
struct EmittedProbes {
  const Instrumentation& wanted;
  const PlanPlaces& places;        // of the plan
  std::uint64_t cells_offset = 0;  // ProbeCells::offset
};

// Adds the function kKernelSymbol to `module`. Returns what became of the annotations. `probes`:
// null in a plain kernel.
AnnotationEffects EmitKernel(const KernelPlan& plan, const VectorShape& shape, llvm::Module& module,
                             const EmittedProbes* probes = nullptr);

}  // namespace loopfleet::worker
