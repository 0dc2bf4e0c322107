#pragma once
// Workload: the inputs on which a program's kernels run, and the outputs they must give. Made once
// for each program and seed, immutable, shared between threads. Making one is as much work as the
// program itself, so a child process does it.

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
#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/tree/loop_tree.h"
#include "worker/verification/buffer_layout.h"
#include "worker/verification/input_draw.h"
#include "worker/verification/shared_memory.h"
#include "worker/verification/verification.h"

namespace loopfleet::worker {

struct Workload {
  looptree::Program program;
  InputSeed seed;
  SharedMemory inputs;                   // sealed: no other process can change them
  BufferLayout layout;                   // of the inputs
  SharedMemory reference;                // the memory of `expected`
  std::vector<ExpectedTensor> expected;  // per Program::outputs
  std::size_t bytes() const { return inputs.bytes().size() + reference.bytes().size(); }
};

// The layout of Workload::reference: for each output the rounded values, the values and the
// tolerances. The last two are left untouched if the comparison is exact.
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

// Computes the reference; tests give another.
using Evaluator = std::function<looptree::Reference(const looptree::Program& program,
                                                    std::span<const looptree::Tensor> inputs)>;

// Fills the memory of a workload; the inputs are drawn to suit the program (input_draw.h). Returns,
// for each output, whether its comparison is exact. UNSUPPORTED: no inputs tell right outputs from
// wrong ones. Of fractions that is not asked, as kernels are verified with whole numbers first, but
// they are refused where a correct kernel could fail.
std::expected<std::vector<bool>, Failure> ComputeReference(
    const looptree::Program& program, InputSeed seed, std::span<std::byte> inputs,
    std::span<std::byte> reference, const Evaluator& evaluator = looptree::Evaluate);

// Does the work of ComputeReference on shared memory, perhaps in another process.
using ReferenceMaker = std::function<std::expected<std::vector<bool>, Failure>(
    const looptree::LoopTree& tree, InputSeed seed, const SharedMemory& inputs,
    const SharedMemory& reference)>;

// RUN_OOM if the host does not have the memory, DEVICE_FAULT if the inputs cannot be sealed, or the
// maker's failure.
std::expected<std::shared_ptr<const Workload>, Failure> MakeWorkload(const looptree::LoopTree& tree,
                                                                     InputSeed seed,
                                                                     const ReferenceMaker& maker);

// The most recently used workloads, within bounds on their bytes and their number. Kernels cannot
// know their inputs beforehand: the seeds come from the operating system at start, and alternate
// from job to job. Safe from any thread; a workload is made by one thread, and the others wait for
// it.
class WorkloadCache {
 public:
  struct Options {
    std::size_t max_bytes = std::size_t{512} << 20;
    // Each workload holds two descriptors, and most systems allow a process 1,024: small workloads
    // would use up the descriptors long before the bytes.
    std::size_t max_count = 256;
    std::uint32_t seeds = 2;  // different inputs of whole numbers for each program
    // Bigger programs have no workload of fractions. Their reference takes about twice as long as
    // that of whole numbers: 10 ms for so many flops (a product of 256).
    std::uint64_t max_fraction_flops = std::uint64_t{1} << 25;
    std::size_t max_fraction_bytes = std::size_t{64} << 20;
    // Of all workloads: kept, used by jobs, or being made. A single one may be bigger.
    std::size_t max_total_bytes = std::size_t{6} << 30;
  };
  explicit WorkloadCache(const Options& options);

  // A workload of the tree's program with whole numbers. Waits until there is room. The cache must
  // outlive its workloads.
  std::expected<std::shared_ptr<const Workload>, Failure> Get(const looptree::LoopTree& tree,
                                                              const ReferenceMaker& maker);
  // One with fractions. Null: the program is too big or may overflow, or there is no room now.
  // Never waits for room, because its caller holds a workload of whole numbers.
  std::shared_ptr<const Workload> GetFractions(const looptree::LoopTree& tree,
                                               const ReferenceMaker& maker);
  // The number of calls of Get that wait for room; for tests.
  std::size_t CountWaiting() const;

 private:
  enum class Patience : std::uint8_t { kNow, kWait };
  struct Making {
    const looptree::Program* program;
    InputSeed seed;
  };
  // Null: it would have to wait for room.
  std::expected<std::shared_ptr<const Workload>, Failure> GetOf(const looptree::LoopTree& tree,
                                                                InputSeed seed, Patience patience,
                                                                std::unique_lock<std::mutex> lock,
                                                                const ReferenceMaker& maker);
  std::shared_ptr<const Workload> Find(const looptree::Program& program, InputSeed seed);
  // Wraps a workload for a caller. Releasing it wakes the threads that wait for room.
  std::shared_ptr<const Workload> Lend(std::shared_ptr<const Workload> workload);
  bool IsMaking(const looptree::Program& program, InputSeed seed) const;
  using Workloads = std::list<std::shared_ptr<const Workload>>;
  // Moves evicted workloads to `dropped`, to be destroyed without the lock.
  void Keep(const std::shared_ptr<const Workload>& workload, Workloads& dropped);
  // Waits until `bytes` more fit, and counts them. First come, first served: otherwise smaller
  // requests could overtake a large one without end. False: kNow, and it would have to wait.
  bool Reserve(std::size_t bytes, Patience patience, std::unique_lock<std::mutex>& lock);
  void Free(std::size_t bytes);

  const Options options_;
  std::vector<InputSeed> seeds_;
  const InputSeed fractions_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable made_;
  std::uint64_t turn_ = 0;
  std::list<Making> making_;
  std::condition_variable freed_;
  std::uint64_t tickets_ = 0;        // handed to the threads that wait for room
  std::uint64_t first_in_line_ = 0;  // the ticket that is served next
  std::size_t total_bytes_ = 0;
  std::size_t bytes_ = 0;   // of the kept workloads
  Workloads newest_first_;  // the last member: destroying it updates the counts above
};

}  // namespace loopfleet::worker
