#pragma once
// SharedMemory: memory shared by the daemon and its children, without a name that could be left
// behind. The object owns its mapping; children map the descriptor themselves.

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

  // kInBlocks: backed by huge pages, whatever the host's settings for them, and rounded up to their
  // size, unless it is so large that the placement of its pages does not matter. With scattered
  // pages a kernel is up to 2.5 % slower in one block of memory than in another
  // (docs/research/timing_experiments.md). A host without free huge pages gives small ones.
  enum class Pages { kAnywhere, kInBlocks };
  // Zeroed, fixed in size, writable in this process. kFull: the host does not have the memory.
  static Result<SharedMemory> Create(std::size_t size, Pages pages = Pages::kAnywhere);
  // The size of the memory that Create makes.
  static std::size_t SizeOf(std::size_t size, Pages pages);

  // From now on no other mapping can be writable or made so; this one stays writable.
  Status SealAgainstWrites();

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }
  // Unique among all memory that this process creates.
  std::uint64_t id() const { return id_; }

 private:
  void Unmap();
  void CollapsePages();

  UniqueFd fd_;
  std::span<std::byte> bytes_;
  std::uint64_t id_ = 0;
};

}  // namespace loopfleet::worker
