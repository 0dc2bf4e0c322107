#pragma once
// ModuleEmitter: emits a DevicePlan as LLVM functions, one per stage, for the machine that the
// DeviceAbi describes.

#include <set>

#include "common/looptree/tree/loop_tree.h"
#include "worker/gpu/codegen/device_abi.h"
#include "worker/gpu/codegen/device_plan.h"

namespace llvm {
class Module;
}

namespace loopfleet::worker {

// Returns the loops whose annotation changed the code.
std::set<looptree::TreeRef> EmitDevice(const DevicePlan& device, DeviceAbi& abi,
                                       llvm::Module& module);

// The buffers that a caller must pass, in this order: inputs, outputs, one scratch area if any.
std::vector<BufferSpec> BufferSpecsOf(const DevicePlan& device);

}  // namespace loopfleet::worker
