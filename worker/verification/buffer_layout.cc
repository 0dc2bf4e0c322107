#include "worker/verification/buffer_layout.h"

namespace loopfleet::worker {

PlacedBuffer PagesOf(const PlacedBuffer& buffer) {
  const std::size_t start = buffer.offset / kGuardBytes * kGuardBytes;
  const std::size_t end = (buffer.end() + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
  return {.offset = start, .size = end - start};
}

std::uint64_t BytesOf(std::span<const BufferSpec> buffers, BufferSpec::Role role) {
  std::uint64_t elements = 0;
  for (const BufferSpec& buffer : buffers) {
    if (buffer.role == role) elements += buffer.element_count;
  }
  return elements * sizeof(float);
}

BufferLayout LayOut(std::span<const std::uint64_t> element_counts, std::size_t first_index) {
  BufferLayout layout;
  std::size_t end = 0;
  std::size_t index = first_index;
  for (const std::uint64_t count : element_counts) {
    const std::size_t page = (end + kGuardBytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
    const PlacedBuffer buffer{.offset = page + (index++ * kStaggerBytes) % kGuardBytes,
                              .size = count * sizeof(float)};
    layout.buffers.push_back(buffer);
    end = buffer.end();
  }
  layout.size = (end + 2 * kGuardBytes - 1) / kGuardBytes * kGuardBytes;
  return layout;
}

}  // namespace loopfleet::worker
