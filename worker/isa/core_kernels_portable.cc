#include <cstddef>

namespace loopfleet::worker::core_kernels {
namespace {
constexpr std::size_t kVectorBytes = 16;
}
}  // namespace loopfleet::worker::core_kernels

#include "worker/isa/core_kernels_body.h"

namespace loopfleet::worker::core_kernels {

const CoreKernels kPortable = MakeKernels(0);

}  // namespace loopfleet::worker::core_kernels
