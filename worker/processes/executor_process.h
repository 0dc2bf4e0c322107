#pragma once
// ExecutorProcess: the daemon's handle on an executor child. Whatever a kernel does, each answer
// comes by its limit, as an answer or a Failure, and what is asked next has a working child again.
// Belongs to one thread.
//
// There are two kinds: the one on the timing slot, which is asked to time kernels, several of them
// ahead so that it never waits for the daemon; and those beside it, which run a kernel once, so
// that one that crashes, hangs or is wrong never comes to the slot.

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <expected>
#include <memory>
#include <optional>

#include "common/job/failure.h"
#include "worker/processes/child_message.h"
#include "worker/processes/compiler_process.h"
#include "worker/sandbox/fork_server.h"
#include "worker/verification/guarded_buffers.h"
#include "worker/verification/workload.h"

namespace loopfleet::worker {

// A kernel in its place in the code arena, and the memory that it works on.
struct KernelCall {
  std::uint64_t entry = 0;  // the address in the children
  std::shared_ptr<const Workload> workload;
  std::shared_ptr<GuardedBuffers> arena;
};

class ExecutorProcess {
 public:
  struct Options {
    ChildRole role = ChildRole::kExecutor;
    // How many arenas the child may have mapped at a time, up to kArenaPlaces. With 1, a kernel
    // that goes astray cannot reach what others write.
    std::uint32_t arena_places = kArenaPlaces;
    std::chrono::milliseconds run_limit{10'000};  // of one run of a kernel
  };
  ExecutorProcess(ForkServer& fork_server, const Options& options, RestartListener on_restart);

  // Starts the child if there is none.
  Status EnsureChild();

  // Runs the kernel once; its outputs are in the arena then. How long that took.
  std::expected<Nanos, Failure> Run(const KernelCall& call);
  // About how long one run takes with all that it uses in the caches, from some runs more; to be
  // checked by whoever uses it. nullopt: something went wrong.
  std::optional<double> FindRunNs(const KernelCall& call);
  // The child that the last Run was given had never run another kernel, so whatever went wrong was
  // that kernel's doing.
  bool ran_in_new_child() const { return ran_in_new_child_; }
  // The next call gets a new child.
  void Renew();

  // Asks for a kernel to be timed; its outputs are in the arena then. `run_took` is how long one
  // run takes, as far as is known: what is allowed depends on it. Finish gives the answers, in
  // order; there has been one Begin for each Finish.
  void Begin(const KernelCall& call, const SamplingPolicy& policy, Nanos run_took);
  std::expected<Timed, Failure> Finish();

  // The core's own capabilities, and its canaries; while nothing is begun. No canaries: there was
  // no memory for them, or the child died of them. With the canaries the child lets go of big
  // memory: so it does not keep for long what nobody needs any more.
  std::expected<DeviceReading, Failure> MeasureDevice(const HardwareFacts& hardware);
  std::optional<CanaryReading> RunCanaries(const HardwareFacts& hardware,
                                           std::uint64_t probe_steps);

 private:
  struct Asked {
    std::uint64_t number = 0;  // of the request
    KernelCall call;
    SamplingPolicy policy;
    Nanos limit{};
    Instant may_run_since{};  // it cannot have been started earlier
  };

  // nullopt: the answer to an older request; the child cannot be trusted any more, and is gone.
  template <class Reply>
  std::expected<std::optional<Reply>, Failure> Await(std::uint64_t number, Instant deadline);
  std::expected<ExecutorReply, Failure> Receive(Instant deadline);  // whatever comes
  struct Ran {
    Nanos passed{};
    double run_ns = 0;  // as the child says
  };
  // One try; nullopt as above.
  std::expected<std::optional<Ran>, Failure> TryRun(const KernelCall& call, std::uint64_t batch_ns);
  std::expected<std::optional<Timed>, Failure> TryFinish();
  void SendAllAgain();
  template <class Reply, class Request>
  std::expected<Reply, Failure> AskIdle(Request request);
  // Has the child unmap big memory, which stays taken on the host for as long as anybody maps it.
  void ReleaseBigMemory();
  // Has what the call works on mapped by the child, and tells where.
  Result<CallPlaces> Attach(const KernelCall& call);
  Status Send(const ExecutorRequest& request, std::span<const int> fds);
  Status SendTime(Asked& asked);
  Failure NoChild(const Error& error) const;
  Failure Replaced(const ExitReason& end);

  // Which memory is mapped where, and when each place was last used.
  struct Place {
    std::uint64_t memory = 0;  // SharedMemory::id or GuardedBuffers::id; 0: none
    std::size_t size = 0;      // of that, in bytes
    std::uint64_t last_used = 0;
  };

  ForkServer& fork_server_;
  const Options options_;
  const RestartListener on_restart_;
  std::optional<ChildProcess> child_;
  std::array<Place, kInputsPlaces> inputs_places_;
  std::array<Place, kArenaPlaces> arena_places_;
  std::uint64_t call_count_ = 0;
  std::uint64_t request_count_ = 0;
  std::uint64_t first_request_ = 0;  // how many there were before this child
  bool ran_in_new_child_ = false;
  std::deque<Asked> begun_;
};

}  // namespace loopfleet::worker
