#pragma once
// GuardedBuffers: shared memory for what one kernel writes, its outputs and its scratch. A child
// maps only the pages that buffers lie in, so a kernel that leaves a buffer by a page crashes; the
// rest of those pages is poison, so one that leaves it by less is found out.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <list>
#include <memory>
#include <mutex>
#include <span>

#include "common/base/result.h"
#include "common/job/failure.h"
#include "worker/verification/buffer_layout.h"
#include "worker/verification/shared_memory.h"
#include "worker/verification/verification.h"

namespace loopfleet::worker {

class GuardedBuffers {
 public:
  GuardedBuffers(SharedMemory memory, BufferLayout layout);

  const SharedMemory& memory() const { return memory_; }
  const BufferLayout& layout() const { return layout_; }
  // Of this memory with this layout: no other has it.
  std::uint64_t id() const { return id_; }
  // The layout fits into the memory.
  void LayOutAnew(const BufferLayout& layout);

  // Everything a kernel can write starts out as poison.
  void Poison();
  // Compares the first buffers with `expected`; also finds writing beside any buffer.
  std::expected<void, Failure> Check(std::span<const ExpectedTensor> expected) const;

 private:
  std::optional<Failure> BesideFailure() const;

  SharedMemory memory_;
  BufferLayout layout_;
  std::uint64_t id_;
};

// Arenas that are used again and again. Any thread may take one; it comes back when its last owner
// lets go of it. The pool has to outlive its arenas.
class GuardedBufferPool {
 public:
  struct Options {
    // Of all arenas in use. One alone may be bigger.
    std::size_t max_bytes = std::size_t{3} << 30;
    // Of arenas kept for later.
    std::size_t max_idle_bytes = std::size_t{256} << 20;
  };
  explicit GuardedBufferPool(const Options& options) : options_(options) {}

  // Waits until there is room. kFull: the host has no memory for it.
  Result<std::shared_ptr<GuardedBuffers>> Take(const BufferLayout& layout);

 private:
  // One with this layout, which children may have mapped; else one that is as large.
  std::unique_ptr<GuardedBuffers> TakeIdle(const BufferLayout& layout);
  void GiveBack(std::unique_ptr<GuardedBuffers> arena);

  const Options options_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::list<std::unique_ptr<GuardedBuffers>>
      idle_;  // the newest first; guarded by mutex_, like all below
  std::size_t idle_bytes_ = 0;
  std::size_t used_bytes_ = 0;
};

}  // namespace loopfleet::worker
