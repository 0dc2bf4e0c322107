#pragma once
// TimingSlot: the one place where kernels are timed. What comes here has been verified; it is
// timed, run once more, and verified again before its time is accepted. The host's lock on the core
// is held as long as there is work, unless other workers wait for it. Belongs to one thread; Stop
// may be called from any.

#include <atomic>
#include <chrono>
#include <deque>
#include <expected>
#include <functional>
#include <memory>

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
    // How long to wait while other workers on this host have the core. Longer than a job may take.
    std::chrono::seconds lock_timeout{300};
    // Kernels in the executor's hands: the one that is timed and the next ones, so that the core
    // does not wait for this process, however long others keep that from its own core: 2 ms in one
    // case of ten beside a compiler, and looks take 0.3 ms.
    std::size_t most_begun = 12;
  };
  TimingSlot(const Options& options, SlotLock lock, ExecutorProcess& executor, const Clock& clock);

  // One more may be begun without waiting for the core.
  bool HasRoom();
  // Puts a verified kernel behind those that were begun. The failure: the core was not to be had.
  std::expected<void, Failure> Begin(const KernelCall& call, const SamplingPolicy& policy,
                                     Nanos run_took);
  bool is_empty() const { return begun_at_.empty(); }
  // Waits for the first of those begun. Its time is not to be believed before Judge. Adds the
  // duration of its stages; waiting for the core counts as queueing, and so does waiting for this
  // process to come and fetch it.
  std::expected<Timed, Failure> Finish(StageDurations& stages);
  // Verifies what the kernel wrote when it ran after it was timed.
  std::expected<void, Failure> Check(const KernelCall& call, StageDurations& stages) const;
  // Waits for the core while other workers on this host have it; each gets its turn. False: it was
  // not to be had.
  bool TakeCore();
  // Runs the canaries on the core that was taken, with nothing begun, and lets go of it. Empty:
  // there was no memory for them.
  std::optional<CanaryReading> RunCanaries(const HardwareFacts& hardware,
                                           std::uint64_t probe_steps);
  // The core is no longer waited for.
  void Stop() { stop_ = true; }

 private:
  void ReleaseCore();

  const Options options_;
  SlotLock lock_;
  bool locked_ = false;
  ExecutorProcess& executor_;
  const Clock& clock_;
  std::deque<Instant> begun_at_;
  Instant last_finish_{};
  std::atomic<bool> stop_{false};
};

struct CorePatience {
  Nanos patience{};  // while other workers on this host have the core
  std::function<bool()> is_told_to_end;
};
// What the core can do at most, measured while no other worker times on it. kUnavailable: others
// kept it for too long; kClosed: told to end meanwhile.
Result<DeviceReading> MeasureDeviceAlone(ExecutorProcess& executor, SlotLock& lock,
                                         const HardwareFacts& hardware,
                                         const CorePatience& patience);

}  // namespace loopfleet::worker
