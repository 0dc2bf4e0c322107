#pragma once
// DeviceHealth: what this worker knows of its timing core, and what follows from it for figures:
// how quick a probe is when the core is quiet, the reference clock, the measured peaks, and whether
// the canaries are steady. Belongs to the timing thread, but for what may be called from any.

#include <cstdint>
#include <expected>
#include <mutex>
#include <optional>

#include "common/base/clock.h"
#include "common/job/failure.h"
#include "common/job/hardware_facts.h"
#include "common/job/job_spec.h"
#include "common/job/measurement.h"
#include "common/job/plausibility.h"
#include "worker/timing/canary.h"
#include "worker/timing/contention_baseline.h"
#include "worker/timing/device_meter.h"
#include "worker/timing/measurement_rounds.h"
#include "worker/timing/sampler.h"

namespace loopfleet::worker {

// What the worker says of its canaries with each heartbeat.
struct CanaryHealth {
  double ratio = 0;  // 0: nothing can be said yet
  std::optional<Canary> drifting;
  std::optional<Instant> steady_until;
};

class DeviceHealth {
 public:
  struct Options {
    Nanos canary_interval = std::chrono::seconds(2);  // at 20 ms a duty of 1 %
    CanaryWatch::Options canaries;
  };
  // `hardware` has the reference clock; its peaks are filled in from the reading.
  DeviceHealth(const Options& options, const DeviceReading& reading, HardwareFacts hardware);

  // From any thread: what the coordinator wants times to be stated at, from the next figure on.
  void SetReferenceClock(double mhz);
  // With peaks at the reference clock.
  HardwareFacts hardware() const;
  // The same with what the core has shown since: if it was contended when its peaks were measured,
  // that is more. The figure goes out with these, for whoever judges it again.
  HardwareFacts AsShown(HardwareFacts hardware) const;

  // For the next of these looks, with what the sampler has to know of the core.
  SamplingPolicy PolicyFor(const MeasurementRounds& rounds) const;
  // Learns how quiet the core can be.
  void Observe(const Samples& samples);

  // The figure, stated at the clock of `hardware`, or why there is none: CUT, UNSTABLE_TIMING.
  std::expected<Measurement, Failure> Judge(const MeasurementRounds& rounds, const JobSpec& spec,
                                            const WorkDone& work,
                                            const HardwareFacts& hardware) const;

  // False: whenever it was probed so far, something else used the core, as the number of its units
  // tells (OnQuietCore).
  bool WasEverQuiet() const;
  bool CanaryIsDue(Instant now) const { return now >= next_canary_; }
  std::uint64_t probe_steps() const { return reading_.probe_steps; }
  // Also when there was none to be had: the next one is due an interval later.
  void ObserveCanary(const std::optional<CanaryReading>& reading, Instant now);
  CanaryHealth health() const;  // from any thread

 private:
  double QuietCycles() const;  // of a probe; 0: not known

  const Options options_;
  DeviceReading reading_;  // its peak of arithmetic rises as canaries show more
  ContentionBaseline quiet_;
  // What a canary of arithmetic takes. By the quickest alone a single clock that was misjudged
  // would make impossible figures plausible for good.
  ContentionBaseline arithmetic_;
  Instant next_canary_{};
  mutable std::mutex mutex_;
  HardwareFacts hardware_;  // guarded by mutex_
  CanaryWatch canaries_;    // guarded by mutex_
};

}  // namespace loopfleet::worker
