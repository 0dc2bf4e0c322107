#pragma once
// The peer of `gpu_compile`: the same kernel as CUDA C++ a person would write for that tile,
// compiled to a cubin by NVRTC in this process. NVRTC is opened at run time.

#include <memory>
#include <string>

#include "common/base/result.h"
#include "worker/gpu/codegen/device_plan.h"
#include "worker/gpu/codegen/gpu_arch.h"

namespace loopfleet::bench {

// A matrix product C[m,n] = sum_k A[m,k] B[k,n] that runs as one tile, or an addition of vectors:
// the same blocks, threads, elements of each thread, depth and shared memory. kInvalid: it is
// neither.
Result<std::string> CudaSource(const worker::DevicePlan& device);

class Nvrtc {
 public:
  // From $LOOPFLEET_NVRTC, the system's libraries, the CUDA toolkit, or where
  // deploy/dependencies.sh puts it. kNotFound, with how to get it.
  static Result<Nvrtc> Open();
  // The cubin. kInvalid, with what the compiler says.
  Result<std::string> Compile(const std::string& source, worker::GpuArch arch) const;
  const std::string& version() const { return version_; }

 private:
  struct Functions;
  std::shared_ptr<const Functions> functions_;
  std::string version_;
};

}  // namespace loopfleet::bench
