#include <cstddef>

namespace loopfleet::worker::core_kernels {
namespace {
constexpr std::size_t kVectorBytes = 64;
}
}  // namespace loopfleet::worker::core_kernels

#include "worker/isa/core_kernels_body.h"

namespace loopfleet::worker::core_kernels {

const CoreKernels kAvx512 = MakeKernels(2, &kAvx2);

}  // namespace loopfleet::worker::core_kernels
