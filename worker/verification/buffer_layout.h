#pragma once
// Where each buffer of a kernel lies in a piece of memory: 64-byte aligned, with a whole page that
// belongs to no buffer before and behind the pages it lies in. Children do not have those pages.
// The starts are staggered within the page: buffers that all start at one page offset would make
// loads wait for unrelated stores (4 KiB aliasing), and a figure depend on that accident.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/backend/kernel.h"

namespace loopfleet::worker {

inline constexpr std::size_t kGuardBytes = 4096;
inline constexpr std::size_t kStaggerBytes = 320;  // five cache lines

struct PlacedBuffer {
  std::size_t offset = 0;  // in bytes
  std::size_t size = 0;    // in bytes
  std::size_t end() const { return offset + size; }
  friend bool operator==(const PlacedBuffer&, const PlacedBuffer&) = default;
};

// The pages that a buffer lies in, as one range.
PlacedBuffer PagesOf(const PlacedBuffer& buffer);

struct BufferLayout {
  std::vector<PlacedBuffer> buffers;
  std::size_t size = 0;  // of the whole, guards included
  friend bool operator==(const BufferLayout&, const BufferLayout&) = default;
};

// `first_index` goes on with the stagger where another piece of memory left off.
BufferLayout LayOut(std::span<const std::uint64_t> element_counts, std::size_t first_index);

}  // namespace loopfleet::worker
