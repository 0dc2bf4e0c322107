#pragma once
// Canaries: three fixed kernels that are always the same (arithmetic, the second cache, memory),
// run now and then between jobs. Where they stop taking as long as they did, the figures of jobs
// cannot be compared with earlier ones either.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/job/quarantine.h"
#include "worker/timing/core_kernels.h"
#include "worker/timing/core_probe.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {

inline constexpr std::uint64_t kCanaryArithmeticSteps = 10'000;  // about 15 us

// How long each took: cycles, but nanoseconds for memory, which has a clock of its own.
struct CanaryReading {
  std::array<double, kCanaries> took{};
  friend bool operator==(const CanaryReading&, const CanaryReading&) = default;
};

// The kernels and their memory, made at the first run. Belongs to the process that times.
class CanarySuite {
 public:
  struct Sizes {
    std::uint64_t second_cache_bytes = 0;  // 0: not known; then a common size
    std::uint64_t last_cache_bytes = 0;
  };
  CanarySuite(const CoreKernels& kernels, const Sizes& sizes);

  // About 10 ms the first time (pages are made), then 3 ms. Empty: there is no memory for it.
  std::optional<CanaryReading> Run(const Stopwatch& stopwatch, CoreProbe& probe);

 private:
  const CoreKernels& kernels_;
  const std::size_t cache_floats_;
  const std::size_t memory_floats_;
  std::unique_ptr<float, void (*)(void*)> memory_;
};

// Whether the canaries still take as long as at first. Pure; belongs to one thread.
class CanaryWatch {
 public:
  struct Options {
    std::size_t window =
        9;  // readings; their median is what counts, so a short disturbance does not
    // Relative, for each canary, beyond which it drifts: more than neighbours on a virtual machine
    // do. What they do is found in each measurement by its probes, and costs it its grade; a worker
    // that could not be leased because of them would leave a small fleet without any.
    std::array<double, kCanaries> tolerance = {0.10, 0.30, 1.0};
  };
  explicit CanaryWatch(const Options& options) : options_(options) {}
  CanaryWatch() : CanaryWatch(Options{}) {}

  void Observe(const CanaryReading& reading, Instant at);

  // The first window is what later ones are compared with; nothing is said before it is full.
  // Time now to time at first, of the canary that is furthest out of its tolerance, or nearest to
  // it; 0 before anything can be said.
  double ratio() const { return ratio_; }
  std::optional<Canary> drifting() const { return drifting_; }
  // When the oldest reading of the last window that was steady was taken: what was measured before
  // is not in doubt.
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
