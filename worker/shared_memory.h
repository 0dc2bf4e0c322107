#pragma once
// SharedMemory: memory that the daemon and its children both see, without a name that could be left
// behind. The mapping belongs to the object; a child maps the descriptor itself.

#include <cstddef>
#include <span>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace loopfleet::worker {

class SharedMemory {
 public:
  enum class Access { kReadOnly, kReadWrite };

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  // Zeroed, fixed in size, writable here. kFull: the host has no memory for it.
  static Result<SharedMemory> Create(std::size_t size);
  // Maps what was received from another process.
  static Result<SharedMemory> Map(UniqueFd fd, std::size_t size, Access access);

  // From now on nobody can map it writable, or make a mapping writable; this one stays so.
  Status SealAgainstOthers();

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }

 private:
  void Unmap();

  UniqueFd fd_;
  std::span<std::byte> bytes_;
};

}  // namespace loopfleet::worker
