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

  // kInBlocks: of huge pages, whatever the host's settings for them, and so a multiple of their
  // size; unless it is so large that where its pages lie does not matter. Pages that lie anywhere
  // make the same kernel up to 2.5 % slower in one piece of memory than in another
  // (docs/MEASUREMENT.md). A host that has no huge page to give gives small ones.
  enum class Pages { kAnywhere, kInBlocks };
  // Zeroed, fixed in size, writable here. kFull: the host has no memory for it.
  static Result<SharedMemory> Create(std::size_t size, Pages pages = Pages::kAnywhere);
  // How large such memory is.
  static std::size_t SizeOf(std::size_t size, Pages pages);

  // From now on nobody can map it writable, or make a mapping writable; this one stays so.
  Status SealAgainstOthers();

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }
  // Of the memory itself; no other that this process ever makes has it.
  std::uint64_t id() const { return id_; }

 private:
  void Unmap();
  void GatherPages();

  UniqueFd fd_;
  std::span<std::byte> bytes_;
  std::uint64_t id_ = 0;
};

}  // namespace loopfleet::worker
