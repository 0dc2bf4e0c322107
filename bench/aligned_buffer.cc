#include "bench/aligned_buffer.h"

#include <algorithm>
#include <cstdlib>

#include "common/base/check.h"

namespace loopfleet::bench {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

void FreeMemory::operator()(float* memory) const { std::free(memory); }

Buffer MakeBuffer(std::uint64_t element_count, float value) {
  const std::size_t bytes =
      (element_count * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
  Buffer buffer(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
  LF_CHECK(buffer != nullptr, "no memory for {} bytes", bytes);
  std::fill_n(buffer.get(), element_count, value);
  return buffer;
}

}  // namespace loopfleet::bench
