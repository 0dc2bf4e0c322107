#include "bench/rigs/aligned_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "common/base/check.h"

namespace loopfleet::bench {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kSmall = std::size_t{32} << 10;  // too small for a huge page

}  // namespace

void FreeMemory::operator()(float* memory) const { std::free(memory); }

Buffer MakeBuffer(std::uint64_t element_count, float value) {
  const std::size_t size = element_count * sizeof(float);
  const std::size_t alignment = size < kSmall ? kAlignment : kHugePage;
  const std::size_t bytes = (size + alignment - 1) / alignment * alignment;
  Buffer buffer(static_cast<float*>(std::aligned_alloc(alignment, bytes)));
  LF_CHECK(buffer != nullptr, "no memory for {} bytes", bytes);
  // Without huge pages the buffer stays in small ones.
  if (alignment == kHugePage) ::madvise(buffer.get(), bytes, MADV_HUGEPAGE);
  std::fill_n(buffer.get(), element_count, value);
  return buffer;
}

}  // namespace loopfleet::bench
