#pragma once
// GpuCanary: a kernel whose result is known, with tiles in shared memory and threads that wait for
// each other, so that a device on which it comes out right can be trusted with the next one.

#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/looptree/interpreter/interpret.h"
#include "worker/gpu/codegen/gpu_arch.h"
#include "worker/gpu/codegen/gpu_kernel.h"

namespace loopfleet::worker {

struct GpuCanary {
  GpuKernel kernel;
  std::string code;  // what the device loads: PTX as it was compiled, or a cubin of it
  std::vector<looptree::Tensor> inputs;
  std::vector<looptree::Tensor> outputs;
};

// kUnavailable: there is no compiler for that architecture.
Result<GpuCanary> MakeGpuCanary(GpuArch arch);

}  // namespace loopfleet::worker
