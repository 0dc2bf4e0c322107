#include "worker/executor_child.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "worker/child_confinement.h"
#include "worker/child_message.h"
#include "worker/shared_memory.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {
namespace {

[[noreturn]] void GiveUpForWantOfMemory() { std::_Exit(kExitOutOfMemory); }

class KernelRunner final : public IterationRunner {
 public:
  KernelRunner(KernelFunction function, float* const* buffers)
      : function_(function), buffers_(buffers) {}
  void Run(std::uint64_t iterations) override {
    for (std::uint64_t i = 0; i < iterations; ++i) function_(buffers_);
  }

 private:
  KernelFunction function_;
  float* const* buffers_;
};

class Executor {
 public:
  Executor(Channel channel, const Backend& backend)
      : channel_(std::move(channel)), backend_(backend) {}

  int Run() {
    for (;;) {
      Result<Channel::Message> message = channel_.ReceiveWithFds(kMaxRequestBytes);
      if (!message) return kExitOk;
      const std::optional<ExecutorRequest> request = DecodeExecutorRequest(message->bytes);
      if (!request) return kExitBadRequest;
      const ExecutorReply reply = std::visit(
          [&](const auto& body) -> ExecutorReply {
            LimitProcessorTime(body.time_limit_s);
            return Answer(body, message->fds);
          },
          *request);
      if (!channel_.Send(Encode(reply), std::nullopt)) return kExitOk;
    }
  }

 private:
  using Fds = std::vector<UniqueFd>;

  ExecutorReply Answer(const LoadRequest& request, Fds& fds) {
    kernel_.reset();
    if (const Status mapped = MapAttached(request, fds); !mapped) {
      if (mapped.error().kind == ErrorKind::kFull) GiveUpForWantOfMemory();
      return LoadFailed{mapped.error().message};
    }
    Result<std::unique_ptr<LoadedKernel>> loaded = backend_.load(request.object);
    if (!loaded) return LoadFailed{loaded.error().message};
    kernel_ = *std::move(loaded);
    pointers_.clear();
    for (const PlacedBuffer& buffer : request.inputs) {
      pointers_.push_back(At(workloads_[request.workload_place], buffer));
    }
    for (const PlacedBuffer& buffer : request.others) pointers_.push_back(At(arena_, buffer));
    return RunOnce();
  }

  ExecutorReply Answer(const RunRequest&, Fds&) {
    if (!kernel_) std::_Exit(kExitBadRequest);
    return RunOnce();
  }

  ExecutorReply Answer(const TimeRequest& request, Fds&) {
    if (!kernel_) std::_Exit(kExitBadRequest);
    KernelRunner runner(kernel_->function(), pointers_.data());
    return TakeSamples(request.policy, stopwatch_, runner);
  }

  ExecutorReply RunOnce() {
    const std::uint64_t start = stopwatch_.NowNs();
    kernel_->function()(pointers_.data());
    return RunDone{.run_ns = stopwatch_.NowNs() - start};
  }

  Status MapAttached(const LoadRequest& request, Fds& fds) {
    if (request.workload_place >= kWorkloadPlaces) std::_Exit(kExitBadRequest);
    std::size_t next = 0;
    const auto take = [&]() -> UniqueFd {
      if (next >= fds.size()) std::_Exit(kExitBadRequest);
      return std::move(fds[next++]);
    };
    if (request.attached.inputs_size > 0) {
      SharedMemory& place = workloads_[request.workload_place];
      place = {};  // first, so that both are never held at once
      LF_TRY(place, SharedMemory::Map(take(), request.attached.inputs_size,
                                      SharedMemory::Access::kReadOnly));
    }
    if (request.attached.arena_size > 0) {
      arena_ = {};
      LF_TRY(arena_, SharedMemory::Map(take(), request.attached.arena_size,
                                       SharedMemory::Access::kReadWrite));
    }
    return {};
  }

  static float* At(const SharedMemory& memory, const PlacedBuffer& buffer) {
    if (buffer.end() > memory.bytes().size()) std::_Exit(kExitBadRequest);
    return reinterpret_cast<float*>(memory.bytes().data() + buffer.offset);
  }

  Channel channel_;
  const Backend& backend_;
  const SystemStopwatch stopwatch_;
  std::array<SharedMemory, kWorkloadPlaces> workloads_;
  SharedMemory arena_;
  std::unique_ptr<LoadedKernel> kernel_;
  std::vector<float*> pointers_;
};

}  // namespace

int RunExecutorChild(Channel channel, const Backend& backend) {
  std::set_new_handler(GiveUpForWantOfMemory);
  return Executor(std::move(channel), backend).Run();
}

}  // namespace loopfleet::worker
