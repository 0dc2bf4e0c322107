#pragma once
// Sampler: times a kernel in repetitions by a fixed policy (docs/MEASUREMENT.md). A repetition is
// so many runs in a row that reading the clock does not matter; its sample is its time divided by
// its runs. A probe stands before and after each repetition: one that finds the core contended
// takes the repetitions beside it out of the figures, and they are repeated as long as the budget
// lasts.

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/measurement.h"
#include "worker/timing/core_probe.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {

struct SamplingPolicy {
  // Accepted samples: never fewer while the patience lasts, never more.
  std::uint32_t least_samples = 3;
  std::uint32_t most_samples = 15;
  std::uint64_t min_repetition_ns = 60'000;
  // Stop once the interval is this narrow (half of it, relative), but not before so much time was
  // sampled: a handful of short repetitions agrees by chance.
  double precision = 0.0075;
  std::uint64_t least_timed_ns = 600'000;
  // No repetition begins later than this after the first, but where there would be no figure
  // otherwise; for that it goes on until the patience is over, and in any case to the least number
  // of samples.
  std::uint64_t budget_ns = 5'000'000;
  std::uint64_t patience_ns = 25'000'000;
  std::uint64_t max_iterations = std::uint64_t{1} << 24;  // in one repetition
  std::uint32_t max_samples = 1'000;                      // of all kinds
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
  friend bool operator==(const SamplingPolicy&, const SamplingPolicy&) = default;
};

// The name of the default policy, part of what a stored result is looked up by: change it with
// anything that changes what a figure means. (Precision and budget only say when to stop: they are
// not part of it.)
inline constexpr std::string_view kPolicyName = "probed3to15x60us";

// A probe this much slower than on a quiet core says that the core is contended.
inline constexpr double kContendedFrom = 1.05;

// What a job asks for, over the defaults.
SamplingPolicy PolicyFor(const JobSpec& spec);

// The longest that timing may take with kernels whose single run takes `run_ns`: what a supervisor
// waits for.
std::uint64_t LongestNs(const SamplingPolicy& policy, std::uint64_t run_ns);

// Runs the kernel a number of times in a row.
class IterationRunner {
 public:
  virtual ~IterationRunner() = default;
  virtual void Run(std::uint64_t iterations) = 0;
  // Takes everything that the kernel uses out of the caches.
  virtual void EvictCaches() = 0;
};

enum class SamplingEnd : std::uint8_t {
  kDone,
  kCut,  // a run surely takes longer than cut_above_ns
};

struct Samples {
  SamplingEnd end = SamplingEnd::kDone;
  std::uint64_t iterations = 0;     // runs in each repetition
  std::vector<double> ns;           // wall time of one run, in the order they were taken
  std::vector<std::uint8_t> flags;  // SampleFlag bits, one for each
  // Throughput probes in cycles: the median of them, and of those beside contended repetitions
  // relative to a quiet core (1 where there are none).
  double probe_cycles = 0;
  double slowdown = 1;
  double clock_before_mhz = 0;  // 0: not known
  double clock_after_mhz = 0;
  friend bool operator==(const Samples&, const Samples&) = default;
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
