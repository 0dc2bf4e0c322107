#include "worker/processes/executor_child.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "kernel/thread_pool.h"
#include "worker/isa/core_kernels.h"
#include "worker/isa/isa_support.h"
#include "worker/isa/processor.h"
#include "worker/processes/child_message.h"
#include "worker/sandbox/confinement.h"
#include "worker/timing/cache_evictor.h"
#include "worker/timing/canary.h"
#include "worker/timing/device_meter.h"
#include "worker/timing/host_core_probe.h"
#include "worker/timing/load_latency.h"
#include "worker/timing/stopwatch.h"
#include "worker/verification/mapped_buffers.h"

namespace loopfleet::worker {
namespace {

constexpr std::uint64_t kMaxRunsPerBatch = std::uint64_t{1}
                                           << 20;  // per batch, if the clock stands still

// Adds the duration of its scope to the time of a step.
class StepTimer {
 public:
  StepTimer(const Stopwatch& stopwatch, std::uint64_t& step_ns)
      : stopwatch_(stopwatch), step_ns_(step_ns), start_ns_(stopwatch.NowNs()) {}
  ~StepTimer() { step_ns_ += stopwatch_.NowNs() - start_ns_; }
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;

 private:
  const Stopwatch& stopwatch_;
  std::uint64_t& step_ns_;
  const std::uint64_t start_ns_;
};

// A probe that adds its own time to a SlotTime.
class AccountedProbe final : public CoreProbe {
 public:
  AccountedProbe(CoreProbe& probe, const Stopwatch& stopwatch, SlotTime& time)
      : probe_(probe), stopwatch_(stopwatch), time_(time) {}
  std::uint64_t ThroughputNs() override {
    const StepTimer timer(stopwatch_, time_[SlotStep::kProbe]);
    return probe_.ThroughputNs();
  }
  bool WaitUntilQuiet(double quiet_ns, std::uint64_t patience_ns) override {
    const StepTimer timer(stopwatch_, time_[SlotStep::kWait]);
    return probe_.WaitUntilQuiet(quiet_ns, patience_ns);
  }
  double ClockMhz(std::uint32_t vector_bytes) override {
    const StepTimer timer(stopwatch_, time_[SlotStep::kClock]);
    return probe_.ClockMhz(vector_bytes);
  }
  void HoldClock(std::uint32_t vector_bytes) override {
    const StepTimer timer(stopwatch_, time_[SlotStep::kClock]);
    probe_.HoldClock(vector_bytes);
  }
  std::uint64_t Preemptions() override { return probe_.Preemptions(); }
  std::uint64_t ProcessorNs() override { return probe_.ProcessorNs(); }

 private:
  CoreProbe& probe_;
  const Stopwatch& stopwatch_;
  SlotTime& time_;
};

class KernelRunner final : public IterationRunner {
 public:
  struct Caches {
    CacheEvictor& evictor;
    ThreadPool& pool;
    std::uint64_t evict_bytes = 0;
    std::uint32_t threads = 1;  // the most that the kernel may use
    const Stopwatch& stopwatch;
    SlotTime& time;
  };
  // `memory`: the bytes of each buffer.
  KernelRunner(KernelFunction function, float* const* buffers,
               std::span<const std::span<std::byte>> memory, const Caches& caches)
      : function_(function), buffers_(buffers), memory_(memory), caches_(caches) {}
  void Run(std::uint64_t iterations) override {
    for (std::uint64_t i = 0; i < iterations; ++i) function_(buffers_);
  }
  void WarmCaches() override {
    // Larger memory does not fit a cache near the core, and a kernel that runs that long warms its
    // caches itself.
    constexpr std::size_t kMostBytes = std::size_t{4} << 20;
    constexpr std::size_t kLineBytes = 64;
    const StepTimer timer(caches_.stopwatch, caches_.time[SlotStep::kWarm]);
    std::size_t total = 0;
    for (const std::span<std::byte> buffer : memory_) total += buffer.size();
    if (total > kMostBytes) return;
    for (const std::span<std::byte> buffer : memory_) {
      for (std::size_t i = 0; i < buffer.size(); i += kLineBytes) {
        static_cast<void>(*static_cast<const volatile std::byte*>(buffer.data() + i));
      }
    }
  }
  void EvictCaches() override {
    const StepTimer timer(caches_.stopwatch, caches_.time[SlotStep::kWarm]);
    // A time taken with warm caches must not pass for a cold one.
    if (!caches_.evictor.Prepare(caches_.evict_bytes)) ExitOutOfMemory();
    caches_.pool.RunOnEach(caches_.threads, [this] { caches_.evictor.Evict(); });
  }

 private:
  KernelFunction function_;
  float* const* buffers_;
  std::span<const std::span<std::byte>> memory_;
  const Caches caches_;
};

class Executor {
 public:
  Executor(Channel& channel, ThreadPool& pool, ChildRole role)
      : channel_(channel), pool_(pool), role_(role) {}

  int Run() {
    free_since_ns_ = stopwatch_.NowNs();
    for (;;) {
      Result<Channel::Message> message = channel_.ReceiveWithFds(kMaxRequestBytes);
      if (!message) return kExitOk;
      if (message->had_to_wait) {  // it was idle: count from now, plus the mapping time
        free_since_ns_ = stopwatch_.NowNs() - time_[SlotStep::kMap];
      }
      const std::optional<ExecutorRequest> request = DecodeExecutorRequest(message->bytes);
      if (!request) return kExitBadRequest;
      const std::optional<ExecutorReply> reply =
          std::visit([&](const auto& body) { return Answer(body, message->fds); }, *request);
      if (!reply) continue;
      free_since_ns_ = stopwatch_.NowNs();
      time_ = {};
      if (!channel_.Send(Encode(*reply), std::nullopt)) return kExitOk;
    }
  }

 private:
  using Fds = std::vector<UniqueFd>;

  std::optional<ExecutorReply> Answer(const MapRequest& request, Fds& fds) {
    const StepTimer timer(stopwatch_, time_[SlotStep::kMap]);
    const bool reads = request.kind == MapRequest::Kind::kInputs;
    const std::size_t places = reads ? inputs_.size() : arenas_.size();
    const std::size_t wanted_fds = request.size > 0 ? 1 : 0;
    if (request.place >= places || fds.size() != wanted_fds) std::_Exit(kExitBadRequest);
    MappedBuffers& place = reads ? inputs_[request.place] : arenas_[request.place];
    place = {};  // unmap first, so that both are never mapped at once
    if (!reads) Open(request.place);
    if (request.size == 0) return std::nullopt;
    auto mapped = MappedBuffers::Map(
        fds.front().get(), request.size, request.buffers,
        reads ? MappedBuffers::Access::kReadOnly : MappedBuffers::Access::kReadWrite);
    if (!mapped) {
      std::_Exit(mapped.error().kind == ErrorKind::kFull ? kExitOutOfMemory : kExitBadRequest);
    }
    place = *std::move(mapped);
    return std::nullopt;
  }

  std::optional<ExecutorReply> Answer(const RunRequest& request, Fds&) {
    const KernelFunction function = Prepare(request.call, request.time_limit_s);
    for (std::uint64_t runs = 1;; runs *= 2) {
      const std::uint64_t start = stopwatch_.NowNs();
      for (std::uint64_t i = 0; i < runs; ++i) function(pointers_.data());
      const std::uint64_t took = stopwatch_.NowNs() - start;
      if (took < request.batch_ns && runs < kMaxRunsPerBatch) continue;
      return RunDone{.number = request.number,
                     .run_ns = static_cast<double>(took) / static_cast<double>(runs)};
    }
  }

  std::optional<ExecutorReply> Answer(const TimeRequest& request, Fds&) {
    const KernelFunction function = Prepare(request.call, request.time_limit_s);
    KernelRunner runner(function, pointers_.data(), memory_,
                        {.evictor = evictor_,
                         .pool = pool_,
                         .evict_bytes = request.policy.evict_bytes,
                         .threads = request.policy.threads,
                         .stopwatch = stopwatch_,
                         .time = time_});
    AccountedProbe probe(ProbeOf(request.policy.probe_steps), stopwatch_, time_);
    const std::uint64_t start = stopwatch_.NowNs();
    Timed timed{
        .number = request.number,
        .samples = SampleRound(request.policy, {.stopwatch = stopwatch_, .probe = probe}, runner)};
    const std::uint64_t sampling = stopwatch_.NowNs() - start;
    SlotTime& time = timed.outside = time_;
    time[SlotStep::kTake] = start - free_since_ns_ - time[SlotStep::kMap];
    time[SlotStep::kTry] = sampling - static_cast<std::uint64_t>(TotalNs(timed.samples)) -
                           time[SlotStep::kWarm] - time[SlotStep::kProbe] - time[SlotStep::kClock] -
                           time[SlotStep::kWait];
    return timed;
  }

  std::optional<ExecutorReply> Answer(const MeterRequest& request, Fds&) {
    processor_time_.Renew({.wall_seconds = request.time_limit_s}, std::chrono::steady_clock::now());
    DeviceReply reply{.number = request.number,
                      .reading = MeasureDevice(kernels_, stopwatch_, request.stream_bytes)};
    for (const std::uint64_t bytes : request.load_blocks) {
      reply.reading.load_ns.push_back(LoadLatencyNs(stopwatch_, bytes).value_or(0));
    }
    return reply;
  }

  std::optional<ExecutorReply> Answer(const CanaryRequest& request, Fds&) {
    processor_time_.Renew({.wall_seconds = request.time_limit_s}, std::chrono::steady_clock::now());
    if (!canaries_) canaries_.emplace(kernels_, request.second_cache_bytes);
    return CanaryReply{.number = request.number,
                       .reading = canaries_->Run(stopwatch_, ProbeOf(request.probe_steps))};
  }

  std::optional<ExecutorReply> Answer(const SampleRequest& request, Fds&) {
    if (role_ != ChildRole::kProfiler) std::_Exit(kExitBadRequest);
    const KernelFunction function = Prepare(request.call, request.time_limit_s);
    return Sampled{.number = request.number,
                   .samples = CodeSampler::Take(request.plan, [&] { function(pointers_.data()); })};
  }

  // The probe with this many steps; 0: the probe chooses the number.
  CoreProbe& ProbeOf(std::uint64_t steps) {
    if (!probe_ || (steps != 0 && probe_->steps() != steps)) {
      probe_ = steps == 0 ? std::make_unique<HostCoreProbe>(kernels_, stopwatch_)
                          : std::make_unique<HostCoreProbe>(kernels_, stopwatch_, steps);
    }
    return *probe_;
  }

  // Makes this arena the one that can be accessed: a kernel that goes astray must not reach the
  // buffers of another one.
  void Open(std::uint32_t place) {
    if (place == open_) return;
    using Access = MappedBuffers::Access;
    if (!arenas_[open_].SetAccess(Access::kNone) || !arenas_[place].SetAccess(Access::kReadWrite)) {
      ExitOutOfMemory();
    }
    open_ = place;
  }

  KernelFunction Prepare(const CallSlots& call, std::uint64_t time_limit_s) {
    processor_time_.Renew({.wall_seconds = time_limit_s, .threads = pool_.size()},
                          std::chrono::steady_clock::now());
    if (call.inputs >= inputs_.size() || call.arena >= arenas_.size()) {
      std::_Exit(kExitBadRequest);
    }
    {
      const StepTimer timer(stopwatch_, time_[SlotStep::kMap]);
      Open(call.arena);
    }
    pointers_.clear();
    memory_.clear();
    const auto written = arenas_[call.arena].buffers();
    for (const auto& mapped :
         {inputs_[call.inputs].buffers(),
          written.first(std::min<std::size_t>(written.size(), call.arena_buffers))}) {
      for (const std::span<std::byte> buffer : mapped) {
        pointers_.push_back(reinterpret_cast<float*>(buffer.data()));
        memory_.push_back(buffer);
      }
    }
    // Follows the buffers (kernel/kernel.h). Only kernels with several threads read it.
    pointers_.push_back(reinterpret_cast<float*>(const_cast<ParallelFor*>(pool_.parallel_for())));
    ResetFloatingPointState();
    FlushInstructionFetch();
    return reinterpret_cast<KernelFunction>(call.entry);
  }

  Channel& channel_;
  ThreadPool& pool_;
  const ChildRole role_;
  const SystemStopwatch stopwatch_;
  const CoreKernels& kernels_ = *HostIsa().core_kernels;
  std::unique_ptr<HostCoreProbe> probe_;
  std::optional<CanarySuite> canaries_;
  CacheEvictor evictor_;
  ProcessorTimeLimit processor_time_;
  std::array<MappedBuffers, kInputSlots> inputs_;
  std::array<MappedBuffers, kArenaPlaces> arenas_;
  std::uint32_t open_ = 0;                    // the place of the arena that can be accessed
  std::vector<float*> pointers_;              // the current kernel's arguments
  std::vector<std::span<std::byte>> memory_;  // the bytes they point to
  std::uint64_t free_since_ns_ = 0;
  SlotTime time_;  // spent since then
};

}  // namespace

int RunExecutorChild(Channel& channel, const ExecutorChildOptions& options) {
  std::set_new_handler(ExitOutOfMemory);
  const bool samples = options.role == ChildRole::kProfiler;
  if (samples) CodeSampler::ShieldThreads();
  ThreadPool pool(options.cores);
  if (samples && !CodeSampler::Install()) return kExitNotConfined;
  if (!SealProcess(options.role, options.isolation, channel.fd())) return kExitNotConfined;
  return Executor(channel, pool, options.role).Run();
}

}  // namespace loopfleet::worker
