#pragma once
// Canaries: three fixed kernels (arithmetic, second-level cache, memory) that run now and then
// between jobs. If their times change, figures of jobs can no longer be compared with earlier ones.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/job/quarantine.h"
#include "worker/isa/core_kernels.h"
#include "worker/timing/core_probe.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {

inline constexpr std::uint64_t kCanaryArithmeticSteps = 10'000;  // about 15 us

// The time of each canary: cycles (nanoseconds if the clock is unknown); always nanoseconds for
// memory, which has a clock of its own.
struct CanaryReading {
  std::array<double, kCanaries> took{};
  friend bool operator==(const CanaryReading&, const CanaryReading&) = default;
};

// The kernels and their memory, which the first Run allocates. Belongs to the process that times
// kernels.
class CanarySuite {
 public:
  // `second_cache_bytes`: 0: unknown; 512 KiB is assumed.
  CanarySuite(const CoreKernels& kernels, std::uint64_t second_cache_bytes);

  // Takes about 20 ms the first time (page faults), then 9 ms. nullopt: the memory cannot be
  // allocated.
  std::optional<CanaryReading> Run(const Stopwatch& stopwatch, CoreProbe& probe);

 private:
  const CoreKernels& kernels_;
  const std::size_t cache_floats_;
  std::unique_ptr<float, void (*)(void*)> memory_;
};

// Compares recent canary times with the first ones to detect drift. Pure; belongs to one thread.
class CanaryDriftDetector {
 public:
  struct Options {
    std::size_t window = 9;  // readings; their median ignores short disturbances
    // The relative change beyond which each canary drifts. It exceeds what neighbours on a virtual
    // machine cause: probes detect those in each measurement and lower its grade. If they also put
    // workers in quarantine, a small fleet would have none left.
    std::array<double, kCanaries> tolerance = {0.10, 0.30, 1.0};
  };
  explicit CanaryDriftDetector(const Options& options) : options_(options) {}
  CanaryDriftDetector() : CanaryDriftDetector(Options{}) {}

  void Observe(const CanaryReading& reading, Instant at);

  // The current time relative to the first window, of the canary with the largest change relative
  // to its tolerance. 0 until the first window is full.
  double ratio() const { return ratio_; }
  std::optional<Canary> drifting() const { return drifting_; }
  // When the oldest reading of the last steady window was taken. Earlier measurements are not in
  // doubt.
  std::optional<Instant> steady_until() const { return steady_until_; }

 private:
  struct Timed {
    CanaryReading reading;
    Instant at;
  };
  std::array<double, kCanaries> Medians() const;

  const Options options_;
  std::deque<Timed> window_;
  std::optional<std::array<double, kCanaries>> first_;
  std::optional<Canary> drifting_;
  std::optional<Instant> steady_until_;
  double ratio_ = 0;
};

}  // namespace loopfleet::worker
