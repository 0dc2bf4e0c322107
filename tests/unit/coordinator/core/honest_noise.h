#pragma once
// HonestNoise: what an honest worker says of a kernel, drawn so that two such figures differ as two
// real ones do (docs/MEASUREMENT.md, "Experiments", quiet): 0.98 % in the median, 9.2 % in a tenth
// of cases, and 32 % at most where both are of grade A. Whatever disturbs makes kernels slower. Each
// figure is disturbed by itself: audits of one worker are seconds apart, disturbances are over by
// then.

#include <cmath>
#include <cstdint>
#include <numbers>

#include "common/base/random.h"
#include "common/job/measurement.h"

namespace loopfleet::coordinator {

class HonestNoise {
 public:
  struct Figure {
    double slowdown = 1;  // the median, of the truth
    double spread = 0;

    // Of a kernel that takes `truth_ns`, by a worker that says so much of what it measures.
    Measurement MeasurementOf(double truth_ns, double factor) const {
      const double ns = truth_ns * slowdown * factor;
      const double low = ns * (1 - spread);
      const double high = ns * (1 + spread);
      return {.elapsed_ns = ns,
              .elapsed_low_ns = low,
              .elapsed_high_ns = high,
              .elapsed_min_ns = low,
              .elapsed_mean_ns = ns,
              .spread = spread,
              .grade = GradeOf(spread),
              .iterations_per_sample = 1,
              .samples_ns = {low, ns, high},
              .sample_flags = {kSampleAccepted, kSampleAccepted, kSampleAccepted}};
    }
  };

  explicit HonestNoise(std::uint64_t seed) : random_(seed) {}

  Figure Draw() {
    constexpr double kShareOfA = 0.41;
    if (Chance(kShareOfA)) {
      // One in 66 lay in a phase that all its moments shared.
      const double slow = Chance(0.985) ? 0.0021 * std::abs(Gauss()) : Between(0.01, 0.32);
      return {.slowdown = 1 + slow, .spread = Between(0.002, 0.01)};
    }
    const double slow = (Chance(0.25) ? 0.09 : 0.014) * -std::log(1 - Uniform());
    const double spread = Chance(0.5) ? Between(0.01, 0.05) : Between(0.05, kWidestSpread - 0.01);
    return {.slowdown = 1 + slow, .spread = spread};
  }
  std::uint64_t Below(std::uint64_t bound) { return random_.Below(bound); }

 private:
  bool Chance(double probability) { return Uniform() < probability; }
  double Between(double low, double high) { return low + (high - low) * Uniform(); }
  double Gauss() {
    return std::sqrt(-2 * std::log(1 - Uniform())) * std::cos(2 * std::numbers::pi * Uniform());
  }
  double Uniform() {  // [0, 1)
    constexpr double kSteps = 9007199254740992;  // 2^53
    return static_cast<double>(random_.Below(std::uint64_t{1} << 53)) / kSteps;
  }

  SplitMix64 random_;
};

}  // namespace loopfleet::coordinator
