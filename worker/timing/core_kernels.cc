#include "worker/timing/core_kernels.h"

namespace loopfleet::worker {

const CoreKernels& CoreKernelsFor([[maybe_unused]] std::string_view isa) {
#if defined(__x86_64__)
  if (isa == "avx512") return core_kernels::kAvx512;
  if (isa == "avx2") return core_kernels::kAvx2;
#endif
  return core_kernels::kPortable;
}

}  // namespace loopfleet::worker
