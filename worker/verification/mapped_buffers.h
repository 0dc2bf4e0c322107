#pragma once
// MappedBuffers: a child's view of memory that the daemon shares with it. Only the pages that
// buffers lie in are mapped: nothing between them, and nothing for a gibibyte on either side. A
// kernel that leaves its buffer by a page or more crashes instead of hitting other memory.

#include <cstddef>
#include <span>
#include <vector>

#include "common/base/result.h"
#include "worker/verification/buffer_layout.h"

namespace loopfleet::worker {

class MappedBuffers {
 public:
  enum class Access { kNone, kReadOnly, kReadWrite };

  MappedBuffers() = default;
  MappedBuffers(MappedBuffers&& other) noexcept;
  MappedBuffers& operator=(MappedBuffers&& other) noexcept;
  ~MappedBuffers();

  // Maps the memory behind `fd`, which is `size` bytes long. kInvalid: a buffer lies outside it.
  // kFull: this process has no room for it.
  static Result<MappedBuffers> Map(int fd, std::size_t size, std::span<const PlacedBuffer> buffers,
                                   Access access);

  // Keeps the pages mapped, so it costs less than to map them again. False: the system refused.
  bool SetAccess(Access access);

  // In the order given to Map.
  std::span<const std::span<std::byte>> buffers() const { return buffers_; }

 private:
  void Unmap();

  std::vector<std::span<std::byte>> pages_;  // of each buffer
  std::byte* start_ = nullptr;
  std::size_t size_ = 0;
  std::vector<std::span<std::byte>> buffers_;
};

}  // namespace loopfleet::worker
