#pragma once
// The value of any observation of a module, by its name.

#include "common/base/result.h"
#include "common/llvm_passes/observation.h"

namespace llvm {
class Module;
}

namespace loopfleet::worker {

// Computes `observation` of `module`. For one with a baseline, `module` is what the reference
// pipeline left. Errors say why there is no value.
Result<passes::ObservationValue> Observe(passes::Observation observation,
                                         const llvm::Module& module);

}  // namespace loopfleet::worker
