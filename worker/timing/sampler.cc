#include "worker/timing/sampler.h"

#include <algorithm>
#include <cmath>

namespace loopfleet::worker {
namespace {

std::uint64_t TimeRepetition(const Stopwatch& stopwatch, IterationRunner& runner,
                             std::uint64_t iterations) {
  const std::uint64_t start = stopwatch.NowNs();
  runner.Run(iterations);
  // A clock that did not move would make the kernel infinitely fast.
  return std::max<std::uint64_t>(stopwatch.NowNs() - start, 1);
}

std::uint64_t FindIterations(const SamplingPolicy& policy, const Stopwatch& stopwatch,
                             IterationRunner& runner) {
  // Aim a little above the least duration, so that a small speed-up does not fall below it; grow at
  // most tenfold a step, for the first repetitions are cold and say too little.
  constexpr double kMargin = 1.1;
  constexpr std::uint64_t kLargestStep = 10;
  std::uint64_t iterations = 1;
  for (;;) {
    const std::uint64_t elapsed = TimeRepetition(stopwatch, runner, iterations);
    if (elapsed >= policy.min_repetition_ns || iterations >= policy.max_iterations)
      return iterations;
    const double wanted = std::ceil(kMargin * static_cast<double>(policy.min_repetition_ns) *
                                    static_cast<double>(iterations) / static_cast<double>(elapsed));
    const auto most = std::min(iterations * kLargestStep, policy.max_iterations);
    iterations = wanted >= static_cast<double>(most) ? most : static_cast<std::uint64_t>(wanted);
  }
}

}  // namespace

Samples TakeSamples(const SamplingPolicy& policy, const Stopwatch& stopwatch,
                    IterationRunner& runner) {
  Samples samples;
  samples.iterations = FindIterations(policy, stopwatch, runner);
  samples.ns.reserve(policy.repetitions);
  std::uint64_t spent = 0;
  while (samples.ns.size() < policy.repetitions) {
    if (samples.ns.size() >= policy.min_repetitions && spent >= policy.budget_ns) break;
    const std::uint64_t elapsed = TimeRepetition(stopwatch, runner, samples.iterations);
    spent += elapsed;
    samples.ns.push_back(static_cast<double>(elapsed) / static_cast<double>(samples.iterations));
  }
  return samples;
}

}  // namespace loopfleet::worker
