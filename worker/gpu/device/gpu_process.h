#pragma once
// GpuProcess: the daemon's handle on the device child. Every call returns by its limit, with an
// answer or a Failure, whatever a kernel or the device does. After a sticky error, or a kernel that
// hangs, the child is replaced. The next child is ready only after the device has passed the check.
// Used by one thread.

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
  std::shared_ptr<GuardedBuffers> arena;  // for the outputs only
};

class GpuProcess {
 public:
  struct Options {
    std::chrono::milliseconds run_limit{10'000};  // for one run of a kernel
    // Additional time to open the device, load the kernel and move gigabytes.
    std::chrono::milliseconds patience{60'000};
  };
  GpuProcess(ForkServer& fork_server, const Options& options, RestartListener on_restart);

  // Makes sure that a child which has passed the check is running. DEVICE_FAULT: the device failed.
  std::expected<void, Failure> EnsureReady();
  // Loads the kernel in place of the previous one and runs it once. The arena gets its outputs.
  std::expected<Nanos, Failure> Run(const GpuCall& call);
  // Times the kernel of the last Run, and runs it again on the arena.
  std::expected<DeviceSamples, Failure> Time(const SamplingPolicy& policy, Nanos run_took);
  // The same for each launch by itself.
  std::expected<LaunchTimes, Failure> TimeLaunches(Nanos run_took);

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
