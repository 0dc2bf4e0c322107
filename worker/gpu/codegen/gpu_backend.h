#pragma once
// GpuBackend: what compiler children of a GPU worker make kernels with: trees to PTX by LLVM, PTX
// to cubins by nvJitLink, remembered. Kernel::object and CodeImage::bytes are a GpuImage each.

#include "worker/backend/backend.h"
#include "worker/gpu/codegen/gpu_arch.h"

namespace loopfleet::worker {

enum class GpuAssembler : std::uint8_t {
  kNvJitLink,  // in the compiler child; it has to be there
  kDriver,     // the driver, when it loads the kernel
};

Backend GpuBackend(GpuArch arch, GpuAssembler assembler);

}  // namespace loopfleet::worker
