#pragma once
// Workload: the inputs that a program's kernels are run on, and the outputs they must give. Made
// once for each program and seed, immutable, shared between threads. Making it is as much work as
// the program itself, so the daemon has a child do it.

#include <condition_variable>
#include <cstdint>
#include <expected>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/job/failure.h"
#include "common/looptree/tree/loop_tree.h"
#include "worker/verification/buffer_layout.h"
#include "worker/verification/shared_memory.h"
#include "worker/verification/verification.h"

namespace loopfleet::worker {

struct Workload {
  looptree::Program program;
  std::uint64_t seed = 0;
  SharedMemory inputs;                   // sealed: nobody else can change them
  BufferLayout layout;                   // of the inputs
  SharedMemory reference;                // what `expected` lies in
  std::vector<ExpectedTensor> expected;  // per Program::outputs
  std::size_t bytes() const { return inputs.bytes().size() + reference.bytes().size(); }
};

// Where things lie in Workload::reference: for each output its values rounded, its values, its
// tolerances. The last two are not even touched where the comparison is exact.
struct ReferenceLayout {
  struct Output {
    std::size_t rounded = 0;  // offsets in bytes
    std::size_t values = 0;
    std::size_t tolerance = 0;
    std::size_t count = 0;  // of elements
  };
  std::vector<Output> outputs;
  std::size_t size = 0;
};
ReferenceLayout LayOutReference(const looptree::Program& program);

// Fills the memory of a workload, its inputs drawn as the program needs it (input_draw.h). For each
// output: whether its comparison is exact. UNSUPPORTED where no inputs would tell right outputs
// from wrong ones.
std::expected<std::vector<bool>, Failure> ComputeReference(const looptree::Program& program,
                                                           std::uint64_t seed,
                                                           std::span<std::byte> inputs,
                                                           std::span<std::byte> reference);

// Does what ComputeReference does, for memory that it shares, perhaps in another process.
using ReferenceMaker = std::function<std::expected<std::vector<bool>, Failure>(
    const looptree::LoopTree& tree, std::uint64_t seed, const SharedMemory& inputs,
    const SharedMemory& reference)>;

// RUN_OOM where the host has no memory for it, or the maker's failure.
std::expected<std::shared_ptr<const Workload>, Failure> MakeWorkload(const looptree::LoopTree& tree,
                                                                     std::uint64_t seed,
                                                                     const ReferenceMaker& maker);

// The workloads used last, within bounds on their bytes and their number. Which values a kernel
// will see cannot be known outside: the seeds come from the operating system at start, and vary
// from job to job. Safe from any thread; what one thread is making, others wait for.
class WorkloadCache {
 public:
  struct Options {
    std::size_t max_bytes = std::size_t{512} << 20;
    // Each has two descriptors, and a process may have 1,024 by default on most systems: small ones
    // would run out of descriptors long before they run out of bytes.
    std::size_t max_count = 256;
    std::uint32_t seeds = 2;  // different inputs for each program
    // Of all there are: those that are kept, those that jobs work with, those that are being made.
    // One alone may be bigger.
    std::size_t max_total_bytes = std::size_t{6} << 30;
  };
  explicit WorkloadCache(const Options& options);

  // Of the tree's program. Waits until there is room. The cache has to outlive its workloads.
  std::expected<std::shared_ptr<const Workload>, Failure> Get(const looptree::LoopTree& tree,
                                                              const ReferenceMaker& maker);
  // How many wait for room.
  std::size_t CountWaiting() const;

 private:
  struct Making {
    const looptree::Program* program;
    std::uint64_t seed;
  };
  std::shared_ptr<const Workload> Find(const looptree::Program& program, std::uint64_t seed);
  // For whoever asked: once that lets go of it, those that wait for room look again.
  std::shared_ptr<const Workload> Lend(std::shared_ptr<const Workload> workload);
  bool IsMaking(const looptree::Program& program, std::uint64_t seed) const;
  using Workloads = std::list<std::shared_ptr<const Workload>>;
  // What is dropped goes to `dropped`, to be let go of without the lock.
  void Keep(const std::shared_ptr<const Workload>& workload, Workloads& dropped);
  // Waits until so many bytes more may be there, and counts them. In turn: a large one would wait
  // for ever if those that need less went past it.
  void Reserve(std::size_t bytes, std::unique_lock<std::mutex>& lock);
  void Free(std::size_t bytes);

  const Options options_;
  std::vector<std::uint64_t> seeds_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable made_;
  std::uint64_t turn_ = 0;
  std::list<Making> making_;
  std::condition_variable freed_;
  std::uint64_t tickets_ = 0;        // given to those that want room
  std::uint64_t first_in_line_ = 0;  // the ticket whose turn it is
  std::size_t total_bytes_ = 0;
  std::size_t bytes_ = 0;   // of those that are kept
  Workloads newest_first_;  // the last member: what it lets go of is counted above
};

}  // namespace loopfleet::worker
