#pragma once
// DeviceHealth: what this worker knows of its timing core, and the judgement of figures by it: the
// time of a probe while the core is quiet, the reference clock, the measured peaks, and whether the
// canaries are steady. Belongs to the timing thread, except for functions marked "from any thread".

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
#include "worker/timing/recent_quantile.h"
#include "worker/timing/sampler.h"

namespace loopfleet::worker {

// The state of the canaries, as each heartbeat reports it.
struct CanaryHealth {
  double ratio = 0;  // 0: not known yet
  std::optional<Canary> drifting;
  std::optional<Instant> steady_until;
};

// The processor time, of all threads, after which a run surely exceeds the job's bound: three times
// the bound and 5 ms, which a neighbour, cold caches and a low clock do not explain. nullopt: the
// job has no bound.
std::optional<Nanos> HopelessAfter(const JobSpec& spec);
// CUT, for a run that was stopped then.
Failure CutUntimed(const JobSpec& spec);

class DeviceHealth {
 public:
  struct Options {
    Nanos canary_interval = std::chrono::seconds(2);  // 1 % of the core at 20 ms a run
    CanaryDriftDetector::Options canaries;
  };
  // `hardware` states the reference clock; its peaks are filled in from the reading.
  DeviceHealth(const Options& options, const DeviceReading& reading, HardwareFacts hardware);

  // Sets the clock at which the coordinator wants times stated, from the next figure on. From any
  // thread.
  void SetReferenceClock(double mhz);
  // With peaks at the reference clock. From any thread.
  HardwareFacts hardware() const;
  // `hardware` with the arithmetic peak raised to what the core has reached since, in case it was
  // contended when the peak was measured. Reported with the figure, so that the coordinator can
  // judge by it too.
  HardwareFacts WithObservedPeaks(HardwareFacts hardware) const;

  // The policy of the next round, with what the sampler needs to know of the core. `is_alone`: as
  // of MeasurementRounds::NextPolicy.
  SamplingPolicy PolicyFor(const MeasurementRounds& rounds, bool is_alone = false) const;
  // Learns how long a probe takes on a quiet core, and how much neighbours slow this one.
  void Observe(const Samples& samples);

  // 95 of 100 differences of two moments that agree (MeasurementRounds::MomentsApart) are at most
  // this large. From any thread.
  double moments_apart() const;
  // 95 of 100 rounds with a contended repetition were slowed by at most this factor
  // (Samples::slowdown). From any thread.
  double slowdown() const;

  // The figure, stated at the clock of `hardware`, or its failure: CUT, UNSTABLE_TIMING. Learns
  // from its rounds how far moments lie apart.
  std::expected<Measurement, Failure> Judge(const MeasurementRounds& rounds, const JobSpec& spec,
                                            const WorkDone& work, const HardwareFacts& hardware);

  // False: something else used the core during every probe so far, judging by the number of its
  // units (QuietCoreCycles).
  bool HasSeenQuiet() const;
  bool CanaryIsDue(Instant now) const { return now >= next_canary_; }
  std::uint64_t probe_steps() const { return reading_.probe_steps; }
  // `reading`: nullopt if the canaries could not run. Either way the next run is due an interval
  // later.
  void ObserveCanary(const std::optional<CanaryReading>& reading, Instant now);
  CanaryHealth health() const;  // from any thread

 private:
  // Two threads share a core, so one takes at most half of the other's time. A larger slowdown is
  // that of an interruption.
  static constexpr double kMostSlowdown = 2;

  double QuietCycles() const;  // of a probe; 0: not known

  const Options options_;
  DeviceReading reading_;  // its arithmetic peak rises as canaries show more
  ContentionBaseline quiet_;
  // Cycles of the arithmetic canary. The quickest run would not do: one misjudged clock would make
  // impossible figures plausible for good.
  ContentionBaseline arithmetic_;
  Instant next_canary_{};
  mutable std::mutex mutex_;
  HardwareFacts hardware_;  // guarded by mutex_
  // Guarded by mutex_. Unknown: just below the difference at which rounds no longer agree.
  RecentQuantile moments_apart_{0.009};
  RecentQuantile slowdown_{kMostSlowdown};  // guarded by mutex_
  CanaryDriftDetector canaries_;            // guarded by mutex_
};

}  // namespace loopfleet::worker
