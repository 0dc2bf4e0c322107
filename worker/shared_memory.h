#pragma once
// SharedMemory: memory that the daemon and its children both see, without a name that could be left
// behind. The mapping belongs to the object; children map the descriptor themselves.

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace loopfleet::worker {

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  // Zeroed, fixed in size, writable here. kFull: the host has no memory for it.
  static Result<SharedMemory> Create(std::size_t size);

  // From now on nobody can map it writable, or make a mapping writable; this one stays so.
  Status SealAgainstOthers();

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }
  // Of the memory itself; no other that this process ever makes has it.
  std::uint64_t id() const { return id_; }

 private:
  void Unmap();

  UniqueFd fd_;
  std::span<std::byte> bytes_;
  std::uint64_t id_ = 0;
};

}  // namespace loopfleet::worker
