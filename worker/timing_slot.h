#pragma once
// TimingSlot: the one place where kernels run: verify, measure, verify again, with the host's lock
// on the core held throughout. A kernel that is wrong is never timed. Belongs to one thread; Stop
// may be called from any.

#include <atomic>
#include <chrono>
#include <expected>
#include <memory>

#include "common/base/clock.h"
#include "common/job/failure.h"
#include "common/job/measurement.h"
#include "common/job/stage.h"
#include "worker/executor_process.h"
#include "worker/slot_lock.h"

namespace loopfleet::worker {

class TimingSlot {
 public:
  struct Options {
    SamplingPolicy policy;
    // How long to wait while other workers on this host have the core. Longer than a job may take.
    std::chrono::seconds lock_timeout{300};
  };
  TimingSlot(const Options& options, SlotLock lock, ExecutorProcess& executor, const Clock& clock);

  // Adds the durations of its stages; waiting for the core counts as queueing.
  std::expected<Measurement, Failure> Evaluate(const Kernel& kernel,
                                               const std::shared_ptr<const Workload>& workload,
                                               StageDurations& stages);
  // Evaluate no longer waits for the core.
  void Stop() { stop_ = true; }

 private:
  std::expected<Measurement, Failure> EvaluateLocked(
      const Kernel& kernel, const std::shared_ptr<const Workload>& workload,
      StageDurations& stages);

  const Options options_;
  SlotLock lock_;
  ExecutorProcess& executor_;
  const Clock& clock_;
  std::atomic<bool> stop_{false};
};

}  // namespace loopfleet::worker
