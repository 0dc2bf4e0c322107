#pragma once
// GpuCanary: a kernel with a known result, which uses tiles in shared memory and barriers. A device
// that computes it correctly can be trusted with the next kernel.

#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/looptree/interpreter/interpret.h"
#include "worker/gpu/codegen/gpu_arch.h"
#include "worker/gpu/codegen/gpu_kernel.h"

namespace loopfleet::worker {

struct GpuCanary {
  GpuKernel kernel;
  std::string code;  // for the device to load: the compiled PTX, or a cubin of it
  std::vector<looptree::Tensor> inputs;
  std::vector<looptree::Tensor> outputs;
};

// kUnavailable: no compiler for that architecture.
Result<GpuCanary> MakeGpuCanary(GpuArch arch);

}  // namespace loopfleet::worker
