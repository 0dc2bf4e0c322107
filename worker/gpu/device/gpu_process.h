#pragma once
// GpuProcess: the daemon's handle on the child that has the device. Whatever a kernel or the device
// does, each answer comes by its limit, as an answer or a Failure. After an error that the child's
// hold on the device does not survive, and after a kernel that hangs, it is replaced; the next one
// is ready only when the device has shown that it computes and remembers rightly. Belongs to one
// thread.

#include <chrono>
#include <expected>
#include <memory>
#include <optional>

#include "common/job/failure.h"
#include "worker/gpu/device/gpu_message.h"
#include "worker/processes/compiler_process.h"
#include "worker/sandbox/fork_server.h"
#include "worker/verification/guarded_buffers.h"
#include "worker/verification/workload.h"

namespace loopfleet::worker {

struct GpuCall {
  std::string image;              // a GpuImage
  std::vector<BufferSpec> specs;  // of all buffers
  std::shared_ptr<const Workload> workload;
  std::shared_ptr<GuardedBuffers> arena;  // for the outputs alone
};

class GpuProcess {
 public:
  struct Options {
    std::chrono::milliseconds run_limit{10'000};  // of one run of a kernel
    // Over that: for opening the device, loading, and moving gigabytes.
    std::chrono::milliseconds patience{60'000};
  };
  GpuProcess(ForkServer& fork_server, const Options& options, RestartListener on_restart);

  // A child that has passed the check is there. DEVICE_FAULT: the device did not pass.
  std::expected<void, Failure> EnsureReady();
  // Loads the kernel in the place of the one before and runs it once: what it wrote is in the
  // arena.
  std::expected<Nanos, Failure> Run(const GpuCall& call);
  // Times what was run last, and runs it once more on the arena.
  std::expected<DeviceSamples, Failure> Time(const SamplingPolicy& policy, Nanos run_took);

 private:
  template <class Reply>
  std::expected<Reply, Failure> Ask(const GpuRequest& request, std::span<const int> fds,
                                    Nanos limit);
  void Replace(ExitReason::Cause cause);

  ForkServer& fork_server_;
  const Options options_;
  const RestartListener on_restart_;
  std::optional<ChildProcess> child_;
  bool is_checked_ = false;  // the child passed
};

}  // namespace loopfleet::worker
