#pragma once
// Workload: the inputs that a program's kernels are run on, and the outputs they must give. Made
// once for each program and seed, immutable, shared between threads.

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "common/base/result.h"
#include "common/looptree/program.h"
#include "worker/buffer_layout.h"
#include "worker/shared_memory.h"
#include "worker/verification.h"

namespace loopfleet::worker {

struct Workload {
  looptree::Program program;
  std::uint64_t seed = 0;
  SharedMemory inputs;                   // sealed: nobody else can change them
  BufferLayout layout;                   // of the inputs
  std::vector<ExpectedTensor> expected;  // per Program::outputs
  std::size_t bytes = 0;                 // of memory that all this takes
};

// Input values are small integers, so that sums and products are exact in float32 and only equality
// will do; positive ones where the program divides or takes roots or logarithms.
// kFull: the host has no memory for it.
Result<std::shared_ptr<const Workload>> MakeWorkload(const looptree::Program& program,
                                                     std::uint64_t seed);

// The workloads used last, within a bound on their bytes. Which values a kernel will see cannot be
// known outside: the seeds come from the operating system at start, and vary from job to job.
// Safe from any thread; what one thread makes, the others wait for.
class WorkloadCache {
 public:
  struct Options {
    std::size_t max_bytes = std::size_t{512} << 20;
    std::uint32_t seeds = 2;  // different inputs for each program
  };
  explicit WorkloadCache(const Options& options);

  Result<std::shared_ptr<const Workload>> Get(const looptree::Program& program);

 private:
  const Options options_;
  std::vector<std::uint64_t> seeds_;
  std::mutex mutex_;  // guards all below
  std::uint64_t turn_ = 0;
  std::list<std::shared_ptr<const Workload>> newest_first_;
  std::size_t bytes_ = 0;  // of those
};

}  // namespace loopfleet::worker
