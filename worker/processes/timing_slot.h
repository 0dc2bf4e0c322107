#pragma once
// TimingSlot: the one place where kernels are timed. Kernels that come here have been verified, and
// their outputs are verified again after timing, before their time is accepted. The host's lock on
// the core is held as long as there is work, unless other workers wait for it. Belongs to one
// thread; Stop may be called from any.

#include <atomic>
#include <chrono>
#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/job/failure.h"
#include "common/job/measurement.h"
#include "common/job/stage.h"
#include "worker/processes/executor_process.h"
#include "worker/processes/slot_lock.h"

namespace loopfleet::worker {

class TimingSlot {
 public:
  struct Options {
    // The longest wait while other workers of this host hold the core. Longer than a job may take.
    std::chrono::seconds lock_timeout{300};
    // The most kernels given to the executor: the one being timed and those queued behind it, so
    // that the timing core does not wait while this process is kept off its own core. Beside a
    // compiler that lasts 2 ms in one case of ten, while a round takes 0.3 ms.
    std::size_t max_in_flight = 12;
    // Nor more once those begun take longer than this, at three runs or their budget each: what was
    // given to the executor can be neither dropped nor overtaken, and a drain, canaries and other
    // workers wait for all of it.
    std::chrono::milliseconds most_queued{50};
    // But a second one, so that the core does not wait between kernels of tens of milliseconds.
    std::chrono::milliseconds most_before_second{1000};
  };
  // All on the timing core. The canaries have a child of their own: that of the kernels is
  // replaced often, and the canaries' memory is costly to make. No kernel can damage it.
  struct Children {
    ExecutorProcess& kernels;
    ExecutorProcess& canaries;
    ExecutorProcess& profiler;  // of the role kProfiler: copies of kernels, and none for a figure
  };
  TimingSlot(const Options& options, SlotLock lock, const Children& children, const Clock& clock);

  // False while the executor has its maximum, by number or by time, or has work while another
  // worker waits for the core.
  bool HasRoom();
  // Queues a verified kernel behind those that were begun; takes the core first. `run_took`: about
  // as long as one run takes. UNSTABLE_TIMING: other workers kept the core.
  std::expected<void, Failure> Begin(const KernelCall& call, const SamplingPolicy& policy,
                                     Nanos run_took);
  bool is_empty() const { return begun_.empty(); }
  // Waits for the kernel begun first. Its samples are not accepted until its outputs are checked.
  // Adds the durations of its stages; the wait for the core and the wait until this process fetches
  // the result count as queueing.
  std::expected<Timed, Failure> Finish(StageDurations& stages);
  // Verifies the outputs that the kernel wrote while it was timed.
  std::expected<void, Failure> Check(const KernelCall& call, StageDurations& stages) const;
  // Waits for the core while other workers of this host hold it; waiting is fair. False: timed out
  // or stopped.
  bool TakeCore();
  // Runs the canaries and releases the core. Call after TakeCore, with nothing begun. nullopt: not
  // enough memory, or the child died of them.
  std::optional<CanaryReading> RunCanaries(const HardwareFacts& hardware,
                                           std::uint64_t probe_steps);
  // Measures the core's peaks, and the latency of loads from blocks of these sizes in bytes;
  // releases the core. Call after TakeCore, with nothing begun.
  std::expected<DeviceReading, Failure> MeasureDevice(const HardwareFacts& hardware,
                                                      std::vector<std::uint64_t> load_blocks);
  // Gives the profiler to `use`, and releases the core. Call after TakeCore, with nothing begun.
  void Profile(const std::function<void(ExecutorProcess& profiler)>& use);
  // Ends the current wait for the core and any later one.
  void Stop() { stop_ = true; }

 private:
  struct Begun {
    Instant at;
    Nanos takes{};  // about
  };

  void ReleaseCore();

  const Options options_;
  SlotLock lock_;
  bool locked_ = false;
  const Children children_;
  const Clock& clock_;
  std::deque<Begun> begun_;
  Nanos queued_{};  // the sum of what these take
  Instant last_finish_{};
  std::atomic<bool> stop_{false};
};

struct CoreWait {
  Nanos patience{};  // longest wait while other workers of this host hold the core
  std::function<bool()> should_stop;
};
// Measures the core's peaks while no other worker times kernels on it. kUnavailable: others kept it
// for too long. kClosed: stopped while waiting for the timing core while waiting. kSystem: the
// measurement failed.
Result<DeviceReading> MeasureDeviceAlone(ExecutorProcess& executor, SlotLock& lock,
                                         const HardwareFacts& hardware, const CoreWait& patience);

}  // namespace loopfleet::worker
