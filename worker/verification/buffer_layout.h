#pragma once
// BufferLayout: where each buffer of a kernel lies in a block of memory: 64-byte aligned, with an
// unused page before and after the pages that it lies in. Children do not map unused pages. The
// starts are staggered within the page: if all buffers started at one page offset, loads would wait
// for unrelated stores (4 KiB aliasing), and figures would depend on that accident.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernel/byte_codec.h"
#include "kernel/kernel.h"

namespace loopfleet::worker {

inline constexpr std::size_t kGuardBytes = 4096;
inline constexpr std::size_t kStaggerBytes = 320;  // five cache lines

struct PlacedBuffer {
  std::size_t offset = 0;  // in bytes
  std::size_t size = 0;    // in bytes
  std::size_t end() const { return offset + size; }
  friend bool operator==(const PlacedBuffer&, const PlacedBuffer&) = default;
};
template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, PlacedBuffer>& buffer) {
  archive(buffer.offset, buffer.size);
}

// The pages that a buffer lies in, as one range.
PlacedBuffer PagesOf(const PlacedBuffer& buffer);

struct BufferLayout {
  std::vector<PlacedBuffer> buffers;
  std::size_t size = 0;  // in bytes, guards included
  friend bool operator==(const BufferLayout&, const BufferLayout&) = default;
};

// Bytes of the buffers with this role, whose sum CheckBuffers has bounded.
std::uint64_t BytesOf(std::span<const BufferSpec> buffers, BufferSpec::Role role);

// `first_index`: continues the stagger of another block of memory.
BufferLayout LayOut(std::span<const std::uint64_t> element_counts, std::size_t first_index);

}  // namespace loopfleet::worker
