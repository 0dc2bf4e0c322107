#pragma once
// ExecutorProcess: the daemon's handle on an executor child. Whatever a kernel does, each request
// ends by its limit with a reply or a Failure, and the next request starts a new child if it needs
// one. Belongs to one thread.
//
// Two kinds exist. The executor on the timing slot times kernels; it is sent several requests
// ahead, so that it never waits for the daemon. Verifiers, away from the slot, run each kernel
// once, so that a kernel that crashes, hangs or is wrong never reaches the slot.

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/random.h"
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
  // Of the arena's buffers, those that the kernel gets: the first ones.
  std::uint32_t arena_buffers = UINT32_MAX;
};

class ExecutorProcess {
 public:
  struct Options {
    ChildRole role = ChildRole::kExecutor;
    // The most arenas that the child has mapped at a time, up to kArenaPlaces. With 1, a kernel
    // that goes astray cannot write into another kernel's buffers.
    std::uint32_t arena_places = kArenaPlaces;
    std::chrono::milliseconds run_limit{10'000};  // of one run of a kernel
    // A child is replaced after so many requests, because a kernel may have damaged it without a
    // sign. The fork server has a spare one ready.
    std::uint32_t max_requests = 256;
    // The number of each request. A kernel that does not know its number cannot forge its reply.
    std::function<std::uint64_t()> new_number = OsRandom64;
  };
  ExecutorProcess(ForkServer& fork_server, const Options& options, RestartListener on_restart);

  // Starts the child if there is none.
  Status EnsureChild();

  struct Ran {
    Nanos passed{};     // the whole request
    double run_ns = 0;  // one run, as the child reports, so the caller has to check it
    // It was stopped, in a child that has ended, and left anything in the arena.
    bool was_stopped = false;
  };
  // Runs the kernel once, leaving its outputs in the arena. A run is stopped if it needs more
  // processor time, of all its threads, than `most_time`.
  std::expected<Ran, Failure> Run(const KernelCall& call, std::optional<Nanos> most_time = {});
  // Estimates the duration of one run with warm caches, in nanoseconds, from further runs. The
  // child reports it, so the caller has to check it. nullopt: something went wrong.
  std::optional<double> FindRunNs(const KernelCall& call);
  // For a profiler. Runs the kernel in batches of 1, 2, 4 ... runs until one lasts `batch`; the
  // duration of one run in that one, in nanoseconds.
  std::expected<double, Failure> Repeat(const KernelCall& call, Nanos batch);
  // For a profiler. `plan.duration_ns` is well below the limit of a run.
  std::expected<CodeSamples, Failure> Sample(const KernelCall& call, const CodeSampler::Plan& plan);
  // The last Run went to a child that had run no other kernel, so any fault was that kernel's own.
  bool ran_in_new_child() const { return ran_in_new_child_; }
  // The next call gets a new child.
  void Renew();

  // Requests that a kernel be timed, which leaves its outputs in the arena. `run_took`: the
  // duration of one run as far as it is known, from which the time limit is set. Finish returns the
  // results in the order of Begin; call it once for each.
  void Begin(const KernelCall& call, const SamplingPolicy& policy, Nanos run_took);
  std::expected<Timed, Failure> Finish();

  // Measure the core's own capabilities, and run its canaries. Call them only while nothing is
  // begun. No canaries: not enough memory, or the child died of them.
  // `load_blocks`: sizes in bytes, for DeviceReading::load_ns.
  std::expected<DeviceReading, Failure> MeasureDevice(const HardwareFacts& hardware,
                                                      std::vector<std::uint64_t> load_blocks = {});
  std::optional<CanaryReading> RunCanaries(const HardwareFacts& hardware,
                                           std::uint64_t probe_steps);
  // Makes the child unmap big memory, which the host cannot free while any process maps it. Call it
  // now and then while the child may be idle.
  void ReleaseBigMemory();

 private:
  struct Asked {
    bool is_sent = false;  // to the present child
    // Another kernel went to that child before it.
    bool may_be_anothers_fault = false;
    std::uint64_t number = 0;  // of the request
    KernelCall call;
    SamplingPolicy policy;
    Nanos limit{};
    Instant may_run_since{};  // the child cannot have started it earlier
  };

  // nullopt: the reply was to an older request. The child can no longer be trusted and was killed.
  template <class Reply>
  std::expected<std::optional<Reply>, Failure> Await(std::uint64_t number, Instant deadline);
  std::expected<ExecutorReply, Failure> Receive(Instant deadline);  // the next reply, of any kind
  // One try; nullopt as above.
  std::expected<std::optional<Ran>, Failure> TryRun(const KernelCall& call, std::uint64_t batch_ns,
                                                    std::optional<Nanos> most_time = {});
  // Waits for a reply, or for what shows that there will be none. False: the child's processor time
  // reached `end` first.
  bool AwaitReplyUntil(Nanos end, Instant deadline);
  std::expected<std::optional<Timed>, Failure> TryFinish();
  void ResendPending();
  // The child has had all requests that it gets.
  bool IsWornOut() const { return child_ && sent_ >= options_.max_requests; }
  std::uint64_t NewRequest();
  template <class Reply, class Request>
  std::expected<Reply, Failure> RequestWhenIdle(Request request);
  // Sends the request, with the memory of the call. By the deadline its reply has to be there.
  struct Sent {
    std::uint64_t number = 0;
    Instant deadline;
    Nanos child_had{};  // the child's processor time before
  };
  template <class Request>
  std::expected<Sent, Failure> SendCall(const KernelCall& call, Request request);
  // SendCall and Await; nullopt as above.
  template <class Reply, class Request>
  std::expected<std::optional<Reply>, Failure> TryCall(const KernelCall& call, Request request);
  // Makes the child map the memory of the call; returns the places.
  Result<CallSlots> Attach(const KernelCall& call);
  Status Send(const ExecutorRequest& request, std::span<const int> fds);
  Status SendTime(Asked& asked);
  Failure NoChild(const Error& error) const;
  Failure Replaced(const ExitReason& end);

  // What a place holds, and when it was last used.
  struct Place {
    std::uint64_t memory = 0;     // SharedMemory::id or GuardedBuffers::id; 0: none
    std::size_t size = 0;         // bytes
    std::uint64_t last_used = 0;  // a value of call_count_
  };

  ForkServer& fork_server_;
  const Options options_;
  const RestartListener on_restart_;
  std::optional<ChildProcess> child_;
  std::array<Place, kInputSlots> inputs_places_;
  std::array<Place, kArenaPlaces> arena_places_;
  std::uint64_t call_count_ = 0;
  std::uint64_t sent_ = 0;               // requests to this child
  std::vector<std::uint64_t> answered_;  // the numbers of the latest that it has answered
  bool ran_in_new_child_ = false;
  std::deque<Asked> begun_;
};

}  // namespace loopfleet::worker
