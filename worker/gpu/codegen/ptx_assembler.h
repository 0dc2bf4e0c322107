#pragma once
// PtxAssembler: PTX into a cubin, the machine code of one GPU architecture. Needs no GPU.
//
// The real one is NVIDIA's nvJitLink, a shared library of 99 MB that is opened when it is needed
// and never linked: a worker starts without it, and says what is missing. Without it a driver
// assembles PTX itself when it loads it, more slowly.

#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "worker/gpu/codegen/gpu_arch.h"

namespace loopfleet::worker {

struct Cubin {
  std::string bytes;
  std::string log;  // what the assembler says of registers and spills, as text; may be empty
  friend bool operator==(const Cubin&, const Cubin&) = default;
};

class PtxAssembler {
 public:
  virtual ~PtxAssembler() = default;
  // kInvalid, with what the assembler says: it is no PTX, or none for that architecture.
  virtual Result<Cubin> Assemble(std::string_view ptx, GpuArch arch) = 0;
  // What cubins depend on besides: "nvJitLink 13.0".
  virtual std::string Version() const = 0;
};

// nvJitLink from the first of these that can be opened: `path` if it is not empty (nothing else
// then), what $LOOPFLEET_NVJITLINK names (likewise), the system's libraries (libnvJitLink.so.13,
// .so.12, .so), the CUDA toolkit in /usr/local/cuda, and where deploy/dependencies.sh puts it.
// kNotFound, with how to get it, if there is none; kSystem if it is not what it should be.
Result<std::unique_ptr<PtxAssembler>> OpenNvJitLink(const std::string& path = "");

}  // namespace loopfleet::worker
