#pragma once
// Sampler: takes one round of a kernel by a fixed policy (docs/MEASUREMENT.md). It times
// repetitions: batches long enough that the cost of reading the clock is negligible. A sample is
// the time of a repetition divided by its runs. A probe runs before and after each repetition; if
// it finds the core contended, the repetitions beside it do not count. MeasurementRounds
// (worker/timing/measurement_rounds.h) combines several rounds.

#include <cstdint>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/measurement.h"
#include "worker/timing/core_probe.h"
#include "worker/timing/samples.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {

// The rules of one round.
struct SamplingPolicy {
  // Bounds on accepted samples. The minimum no longer holds after `patience_ns`.
  std::uint32_t min_samples = 2;
  std::uint32_t most_samples = 15;
  std::uint64_t min_repetition_ns = 60'000;
  // Above 0: sample until half the width of the interval, relative to the median, is at most this.
  double precision = 0;
  // Sample until this much accepted time has been measured; without a precision, that is enough.
  std::uint64_t least_timed_ns = 300'000;
  // No repetition begins later than `budget_ns` after the first. While there are fewer than the
  // least samples, repetitions may begin until `patience_ns`.
  std::uint64_t budget_ns = 2'500'000;
  std::uint64_t patience_ns = 2'500'000;
  // How long a round may wait in all for a quiet core, when a probe finds it contended before a
  // repetition: a probe takes 2 us, a repetition 60. Needs `quiet_cycles` and warm runs. 0: no
  // wait.
  std::uint64_t quiet_wait_ns = 0;
  // After this many contended repetitions and none accepted the round ends: another moment is
  // better. Once the patience is over, preempted ones count as well; one that was not preempted has
  // to be there.
  std::uint32_t give_up_after = 3;
  std::uint64_t max_iterations = std::uint64_t{1} << 24;  // in one repetition
  std::uint32_t max_samples = 1'000;                      // accepted or not
  std::uint64_t iterations = 0;  // per repetition, as an earlier round found; 0: unknown
  // Estimated time of one run, so that fewer runs are needed to find the iterations, and a long one
  // is not run untimed; 0: unknown.
  double estimated_run_ns = 0;
  CacheState cache = CacheState::kWarm;  // cold: single runs, each after an eviction
  // Stop as soon as one run certainly takes longer, at the reference clock; 0: never.
  std::uint64_t cut_above_ns = 0;
  double reference_mhz = 0;  // 0: times are wall times
  // Cycles of a throughput probe on a quiet core; 0: unknown, the quickest probe of the round
  // counts as quiet.
  double quiet_cycles = 0;
  std::uint64_t probe_steps = 0;   // of the probe that gave quiet_cycles; 0: the sampler's own
  std::uint64_t evict_bytes = 0;   // size of the last-level cache, for cold runs
  std::uint32_t threads = 1;       // that the kernel may use; the caches of their cores are evicted
  std::uint32_t vector_bytes = 0;  // Kernel::vector_bytes
  friend bool operator==(const SamplingPolicy&, const SamplingPolicy&) = default;
};

// The core is contended if a probe takes more than this many times as long as on a quiet core.
inline constexpr double kContendedFrom = 1.05;

// The longest that a round may take if a single run takes `run_ns`. The supervisor waits that long.
std::uint64_t LongestNs(const SamplingPolicy& policy, std::uint64_t run_ns);

// Runs the kernel a number of times in a row.
class IterationRunner {
 public:
  virtual ~IterationRunner() = default;
  virtual void Run(std::uint64_t iterations) = 0;
  // Loads what the kernel uses into the caches, as far as it fits: other kernels have used them.
  virtual void WarmCaches() = 0;
  // Evicts everything that the kernel uses from the caches.
  virtual void EvictCaches() = 0;
};

// What the sampler measures with.
struct Instruments {
  const Stopwatch& stopwatch;
  CoreProbe& probe;
};

// Finds how many iterations fill a repetition, then times repetitions until the policy is satisfied
// or a limit is reached.
Samples SampleRound(const SamplingPolicy& policy, const Instruments& instruments,
                    IterationRunner& runner);

}  // namespace loopfleet::worker
