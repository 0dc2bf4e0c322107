#pragma once
// GpuBackend: the Backend for compiler children of a GPU worker: LLVM compiles trees to PTX,
// nvJitLink assembles PTX to cubins, which are cached. Kernel::object and CodeImage::bytes are each
// an encoded GpuImage.

#include <string>

#include "worker/backend/backend.h"
#include "worker/gpu/codegen/gpu_arch.h"

namespace loopfleet::worker {

enum class GpuAssembler : std::uint8_t {
  kNvJitLink,  // in the compiler child; must be installed
  kDriver,     // the driver assembles when it loads the kernel
};

// `assembler_place`: of nvJitLink; empty: the first that can be used.
Backend GpuBackend(GpuArch arch, GpuAssembler assembler, const std::string& assembler_place = "");

}  // namespace loopfleet::worker
