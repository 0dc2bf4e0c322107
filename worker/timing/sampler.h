#pragma once
// Sampler: times a kernel in repetitions by a fixed policy (docs/MEASUREMENT.md). A repetition is
// so many runs in a row that reading the clock does not matter; its sample is its time divided by
// its runs.

#include <cstdint>
#include <string_view>
#include <vector>

#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {

struct SamplingPolicy {
  std::uint32_t repetitions = 15;
  std::uint64_t min_repetition_ns = 60'000;
  // A kernel so slow that the repetitions do not fit into the budget gets fewer, but never below
  // this.
  std::uint32_t min_repetitions = 5;
  std::uint64_t budget_ns = 1'000'000'000;
  std::uint64_t max_iterations = std::uint64_t{1} << 24;  // in one repetition
};

// The name of the default policy, part of what a stored result is looked up by: change it with
// anything that changes what a figure means.
inline constexpr std::string_view kPolicyName = "fixed15x60us";

// Runs the kernel a number of times in a row.
class IterationRunner {
 public:
  virtual ~IterationRunner() = default;
  virtual void Run(std::uint64_t iterations) = 0;
};

struct Samples {
  std::uint64_t iterations = 0;  // runs in each repetition
  std::vector<double> ns;        // for one run, in the order they were taken
};

// Finds how many iterations fill a repetition (which also warms up), then times the repetitions.
Samples TakeSamples(const SamplingPolicy& policy, const Stopwatch& stopwatch,
                    IterationRunner& runner);

}  // namespace loopfleet::worker
