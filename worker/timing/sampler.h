#pragma once
// Sampler: one look at a kernel: times it in repetitions by a fixed policy (docs/MEASUREMENT.md). A
// repetition is so many runs in a row that reading the clock does not matter; its sample is its
// time divided by its runs. A probe stands before and after each repetition: one that finds the
// core contended takes the repetitions beside it out of the figures. What several looks say
// together is the business of MeasurementRounds (worker/timing/measurement_rounds.h).

#include <cstdint>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/measurement.h"
#include "worker/timing/core_probe.h"
#include "worker/timing/samples.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {

// Of one look.
struct SamplingPolicy {
  // Accepted samples: never fewer while the patience lasts, never more.
  std::uint32_t least_samples = 2;
  std::uint32_t most_samples = 15;
  std::uint64_t min_repetition_ns = 60'000;
  // Above 0: go on until the interval is this narrow (half of it, relative).
  double precision = 0;
  // So much of accepted time, and it is enough.
  std::uint64_t least_timed_ns = 300'000;
  // No repetition begins later than this after the first, but for the least number of samples:
  // those are tried for until the patience is over.
  std::uint64_t budget_ns = 2'500'000;
  std::uint64_t patience_ns = 2'500'000;
  // Where the core is contended before a repetition, so long in all of a look is waited for a quiet
  // moment: probes show it, which takes 2 us, and a repetition 60. Needs a known quiet level, and
  // warm runs.
  std::uint64_t quiet_wait_ns = 0;
  // So many contended repetitions and not one accepted: the rest is left to another moment.
  std::uint32_t hopeless_samples = 3;
  std::uint64_t max_iterations = std::uint64_t{1} << 24;  // in one repetition
  std::uint32_t max_samples = 1'000;                      // of all kinds
  std::uint64_t iterations = 0;  // runs in a repetition, as an earlier look found; 0: not known
  // About how long one run takes, which spares most of the runs that find their number; 0: not
  // known.
  double likely_run_ns = 0;
  CacheState cache =
      CacheState::kWarm;  // cold: one run a repetition, the caches evicted before each
  // Stop as soon as a run surely takes longer, at the reference clock; 0: never.
  std::uint64_t cut_above_ns = 0;
  double reference_mhz = 0;  // 0: times are what the wall says
  // How many cycles a throughput probe takes on a quiet core; 0: not known, then the quickest of
  // the measurement itself is taken for quiet.
  double quiet_cycles = 0;
  std::uint64_t probe_steps = 0;  // of the probe that was found with; 0: the sampler's own
  std::uint64_t evict_bytes = 0;  // size of the last cache, for cold runs
  std::uint32_t threads = 1;      // that the kernel may use, whose cores' caches are evicted
  friend bool operator==(const SamplingPolicy&, const SamplingPolicy&) = default;
};

// A probe this much slower than on a quiet core says that the core is contended.
inline constexpr double kContendedFrom = 1.05;

// The longest that timing may take with kernels whose single run takes `run_ns`: what a supervisor
// waits for.
std::uint64_t LongestNs(const SamplingPolicy& policy, std::uint64_t run_ns);

// Runs the kernel a number of times in a row.
class IterationRunner {
 public:
  virtual ~IterationRunner() = default;
  virtual void Run(std::uint64_t iterations) = 0;
  // Brings what the kernel uses into the caches, as far as it fits: other kernels had them.
  virtual void WarmCaches() = 0;
  // Takes everything that the kernel uses out of the caches.
  virtual void EvictCaches() = 0;
};

// What the sampler measures with.
struct Instruments {
  const Stopwatch& stopwatch;
  CoreProbe& probe;
};

// Finds how many iterations fill a repetition, then times repetitions until it knows enough or may
// not go on.
Samples TakeSamples(const SamplingPolicy& policy, const Instruments& instruments,
                    IterationRunner& runner);

}  // namespace loopfleet::worker
