#pragma once
// ModuleEmitter: a DevicePlan as LLVM functions, one for each stage, for whichever machine the
// DeviceAbi stands for.

#include <set>

#include "common/looptree/tree/loop_tree.h"
#include "worker/gpu/codegen/device_abi.h"
#include "worker/gpu/codegen/device_plan.h"

namespace llvm {
class Module;
}

namespace loopfleet::worker {

// Gives the loops whose annotation changed the code.
std::set<looptree::TreeRef> EmitDevice(const DevicePlan& device, DeviceAbi& abi,
                                       llvm::Module& module);

// What a caller has to pass, in this order: inputs, outputs, one scratch area if there is any.
std::vector<BufferSpec> BufferSpecsOf(const DevicePlan& device);

}  // namespace loopfleet::worker
