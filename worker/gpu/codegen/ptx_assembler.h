#pragma once
// PtxAssembler: assembles PTX to a cubin, the machine code of one GPU architecture. Needs no GPU.
// Used by one thread at a time.
//
// The real implementation is NVIDIA's nvJitLink, a shared library of 99 MB that is opened at run
// time and never linked: a worker starts without it and reports what is missing. Without it, the
// driver assembles PTX when it loads the code, which is slower.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "worker/gpu/codegen/gpu_arch.h"

namespace loopfleet::worker {

struct Cubin {
  std::string bytes;
  std::string log;  // the assembler's text on registers and spills; may be empty
  friend bool operator==(const Cubin&, const Cubin&) = default;
};

class PtxAssembler {
 public:
  virtual ~PtxAssembler() = default;
  // kInvalid, with the assembler's message: not PTX, or not PTX for that architecture.
  virtual Result<Cubin> Assemble(std::string_view ptx, GpuArch arch) = 0;
  // The assembler's name and version, which cubins depend on too: "nvJitLink 13.0".
  virtual std::string Version() const = 0;
};

// Where nvJitLink may be: only $LOOPFLEET_NVJITLINK if that is set, else in turn the system's
// libraries (libnvJitLink.so.13, .so.12, .so), the CUDA toolkit in /usr/local/cuda, and the folder
// where deploy/dependencies.sh installs it.
std::vector<std::string> NvJitLinkPlaces();
// Opens nvJitLink at `place`, if it is not empty, else the first of NvJitLinkPlaces() that has all
// functions needed. kNotFound, with how to install it: none can be opened. kSystem: what can be
// opened lacks a needed function.
Result<std::unique_ptr<PtxAssembler>> OpenNvJitLink(const std::string& place = "");

}  // namespace loopfleet::worker
