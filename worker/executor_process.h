#pragma once
// ExecutorProcess: the daemon's handle on an executor child and on the memory they share. Whatever
// the kernel does, each call ends by its limit, with an answer or a Failure, and the next Load has
// a working child again. Belongs to one thread.

#include <array>
#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/job/failure.h"
#include "worker/child_message.h"
#include "worker/compiler_process.h"
#include "worker/kernel.h"
#include "worker/nursery.h"
#include "worker/shared_memory.h"
#include "worker/workload.h"

namespace loopfleet::worker {

class ExecutorProcess {
 public:
  struct Options {
    std::chrono::milliseconds run_limit{10'000};
    std::uint64_t footprint_bytes = std::uint64_t{2} << 30;  // of a kernel's outputs and scratch
    // An arena that grew beyond this for one job is given back before the next.
    std::size_t kept_arena_bytes = std::size_t{256} << 20;
  };
  ExecutorProcess(Nursery& nursery, const Options& options, RestartListener on_restart);

  // Starts the child if there is none.
  Status EnsureChild();

  // Poisons the arena, links the kernel and runs it once. It stays loaded until the next Load or a
  // Failure.
  std::expected<void, Failure> Load(const Kernel& kernel,
                                    const std::shared_ptr<const Workload>& workload);
  // Poisons the arena and runs the loaded kernel once more.
  std::expected<void, Failure> RunAgain();
  // Compares the outputs with the workload's; also finds writing beside the buffers.
  std::expected<void, Failure> CheckOutputs() const;
  std::expected<Samples, Failure> Time(const SamplingPolicy& policy);

 private:
  template <class Reply>
  std::expected<Reply, Failure> Ask(const ExecutorRequest& request, std::span<const int> fds,
                                    Nanos limit);
  Failure Replace(ErrorKind error);
  Status FitArena(std::size_t bytes);
  std::uint32_t PlaceFor(const std::shared_ptr<const Workload>& workload);
  std::optional<Failure> GuardFailure() const;

  Nursery& nursery_;
  const Options options_;
  const RestartListener on_restart_;
  std::optional<ChildProcess> child_;

  SharedMemory arena_;
  bool arena_is_mapped_ = false;  // by the child
  // What the child has mapped where, and when each place was last used.
  std::array<std::shared_ptr<const Workload>, kWorkloadPlaces> places_;
  std::array<std::uint64_t, kWorkloadPlaces> last_used_{};
  std::uint64_t load_count_ = 0;

  // Of the loaded kernel.
  std::shared_ptr<const Workload> workload_;
  BufferLayout layout_;
  Nanos load_took_{};
};

}  // namespace loopfleet::worker
