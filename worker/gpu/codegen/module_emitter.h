#pragma once
// ModuleEmitter: emits a DevicePlan as LLVM functions, one per stage, for the machine that the
// DeviceAbi describes.

#include "worker/gpu/codegen/device_abi.h"
#include "worker/gpu/codegen/device_plan.h"
#include "worker/lowering/annotation_effects.h"

namespace llvm {
class Module;
}

namespace loopfleet::worker {

// Returns what became of the annotations.
AnnotationEffects EmitDevice(const DevicePlan& device, DeviceAbi& abi, llvm::Module& module);

// The buffers that a caller must pass, in this order: inputs, outputs, one scratch area if any.
std::vector<BufferSpec> BufferSpecsOf(const DevicePlan& device);

}  // namespace loopfleet::worker
