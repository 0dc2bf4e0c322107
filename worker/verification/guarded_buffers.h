#pragma once
// GuardedBuffers: shared memory for what one kernel writes: its outputs and its scratch. A child
// maps only the pages that buffers lie in, so a kernel that overruns a buffer by a page crashes.
// The rest of those pages is poison, so a smaller overrun is detected.

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
  // Unique to this memory with this layout.
  std::uint64_t id() const { return id_; }
  // `layout` must fit into the memory. Changes the id.
  void SetLayout(const BufferLayout& layout);

  // Fills everything that a kernel can write with poison.
  void Poison();
  // Compares the first buffers with `expected`, and detects writes beside any buffer. Error:
  // WRONG_OUTPUT.
  std::expected<void, Failure> Check(std::span<const ExpectedTensor> expected) const;

 private:
  std::optional<Failure> FindOverrun() const;

  SharedMemory memory_;
  BufferLayout layout_;
  std::uint64_t id_;
};

// Guarded buffers for reuse. Any thread may take some; they come back when their last owner
// releases them. The pool must outlive them.
class GuardedBufferPool {
 public:
  struct Options {
    // Of all buffers in use. A single request may be bigger.
    std::size_t max_bytes = std::size_t{3} << 30;
    // Of buffers kept for later.
    std::size_t max_idle_bytes = std::size_t{256} << 20;
  };
  explicit GuardedBufferPool(const Options& options) : options_(options) {}

  // Waits until there is room. First come, first served: otherwise smaller requests could overtake
  // a large one without end. kFull: the host does not have the memory.
  Result<std::shared_ptr<GuardedBuffers>> Take(const BufferLayout& layout);
  // The number of calls of Take that wait for room; for tests.
  std::size_t CountWaiting() const;

 private:
  // Idle buffers with this layout, which children may have mapped; otherwise idle memory of the
  // same size, laid out for it. Null: none.
  std::unique_ptr<GuardedBuffers> TakeIdle(const BufferLayout& layout);
  void GiveBack(std::unique_ptr<GuardedBuffers> arena);

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable returned_;
  // Newest first. Guarded by mutex_, like all below.
  std::list<std::unique_ptr<GuardedBuffers>> idle_;
  std::size_t idle_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::uint64_t tickets_ = 0;        // handed to the calls of Take
  std::uint64_t first_in_line_ = 0;  // the ticket that is served next
};

}  // namespace loopfleet::worker
