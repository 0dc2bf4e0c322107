#pragma once
// The peer of `gpu_compile`: the same kernel as hand-written CUDA C++ for that tile, compiled to a
// cubin by NVRTC in this process. NVRTC is loaded at run time.

#include <memory>
#include <string>

#include "common/base/result.h"
#include "worker/gpu/codegen/device_plan.h"
#include "worker/gpu/codegen/gpu_arch.h"

namespace loopfleet::bench {

// A matrix product C[m,n] = sum_k A[m,k] B[k,n] that runs as one tile, or a vector addition, with
// the same blocks, threads, elements per thread, depth and shared memory. kInvalid for other
// programs.
Result<std::string> CudaSource(const worker::DevicePlan& device);

class Nvrtc {
 public:
  // Searches $LOOPFLEET_NVRTC, the system's libraries, the CUDA toolkit, and the place where
  // deploy/dependencies.sh installs it. The text of kNotFound says how to get it.
  static Result<Nvrtc> Open();
  // Returns the cubin. kInvalid carries the compiler's output.
  Result<std::string> Compile(const std::string& source, worker::GpuArch arch) const;
  const std::string& version() const { return version_; }

 private:
  struct Functions;
  std::shared_ptr<const Functions> functions_;
  std::string version_;
};

}  // namespace loopfleet::bench
