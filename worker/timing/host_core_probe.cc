#include "worker/timing/host_core_probe.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "worker/isa/processor.h"
#include "worker/timing/clock_reading.h"
#include "worker/timing/statistics.h"

namespace loopfleet::worker {
namespace {

// About 4 us at 4 GHz.
constexpr double kChainCycles = 15'000;

// The shortest of `tries`, each between two clock readings.
template <class Work>
std::uint64_t LeastNs(const Stopwatch& stopwatch, int tries, const Work& work) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t start = stopwatch.NowNs();
    work();
    least = std::min(least, stopwatch.NowNs() - start);
  }
  return least;
}

// The cost of the clock readings around a chain.
std::uint64_t ReadingNs(const Stopwatch& stopwatch) {
  return LeastNs(stopwatch, 4, [] {});
}

const CoreKernels& Narrower(const CoreKernels& kernels) {
  return kernels.narrower != nullptr ? *kernels.narrower : kernels;
}

}  // namespace

HostCoreProbe::HostCoreProbe(const CoreKernels& kernels, const Stopwatch& stopwatch,
                             std::uint64_t steps)
    : widest_(kernels),
      kernels_(Narrower(kernels)),
      stopwatch_(stopwatch),
      steps_(std::max<std::uint64_t>(steps, 1)),
      latency_(FindLatency()) {}

HostCoreProbe::HostCoreProbe(const CoreKernels& kernels, const Stopwatch& stopwatch)
    : widest_(kernels),
      kernels_(Narrower(kernels)),
      stopwatch_(stopwatch),
      latency_(FindLatency()) {
  constexpr std::uint64_t kTrialSteps = 2'000;
  constexpr int kTrials = 300;
  const std::uint64_t least =
      LeastNs(stopwatch, kTrials, [&] { kernels_.multiply_adds_from_cache(kTrialSteps); });
  steps_ =
      std::max<std::uint64_t>(kTrialSteps * kThroughputNs / std::max<std::uint64_t>(least, 1), 1);
}

double HostCoreProbe::LeastCycles() const {
  return static_cast<double>(steps_) * kernels_.least_cycles_per_step;
}

std::uint64_t HostCoreProbe::ThroughputNs() {
  // Loads all operands once: a kernel that fills the first-level cache has evicted them, and
  // loading them again would look like contention.
  constexpr std::uint64_t kAllOperands = 64;  // steps, with the narrowest vectors
  kernels_.multiply_adds_from_cache(kAllOperands);
  const std::uint64_t start = stopwatch_.NowNs();
  kernels_.multiply_adds_from_cache(steps_);
  return std::max<std::uint64_t>(stopwatch_.NowNs() - start, 1);
}

std::uint64_t HostCoreProbe::EmptyNs() const {
  constexpr int kTries = 32;
  return LeastNs(stopwatch_, kTries, [this] { kernels_.multiply_adds_from_cache(0); });
}

bool HostCoreProbe::WaitUntilQuiet(double quiet_ns, std::uint64_t patience_ns) {
  const std::uint64_t start = stopwatch_.NowNs();
  do {
    if (static_cast<double>(ThroughputNs()) <= quiet_ns) return true;
  } while (stopwatch_.NowNs() - start < patience_ns);
  return false;
}

std::uint64_t HostCoreProbe::Preemptions() {
  rusage usage{};
  if (::getrusage(RUSAGE_THREAD, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

std::uint64_t HostCoreProbe::ProcessorNs() { return ThreadProcessorNs(); }

const CoreKernels* HostCoreProbe::KernelsFor(std::uint32_t vector_bytes) const {
  if (latency_ == 0) return nullptr;
  const CoreKernels* kernels = &widest_;
  while (kernels != nullptr && kernels->vector_bytes > vector_bytes) kernels = kernels->narrower;
  return kernels;
}

double HostCoreProbe::FindLatency() const {
  constexpr int kTries = 9;
  constexpr double kMostOff = 0.25;
  constexpr double kLeastLatency = 4;
  constexpr double kMostLatency = 7;
  if (kernels_.dependent_multiply_adds == nullptr) return 0;
  const auto scalar_steps = static_cast<std::uint64_t>(kChainCycles / kCyclesPerStep);
  constexpr std::uint64_t kSteps = 4'000;
  const std::uint64_t reading = ReadingNs(stopwatch_);
  // In pairs, since the clock may rise meanwhile.
  std::vector<double> found;
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t scalar = LeastNs(stopwatch_, 1, [&] { DependentSteps(scalar_steps); });
    const std::uint64_t vector =
        LeastNs(stopwatch_, 1, [&] { kernels_.dependent_multiply_adds(kSteps); });
    if (scalar <= reading || vector <= reading) return 0;  // the stopwatch does not move
    const double cycles_per_ns =
        static_cast<double>(scalar_steps) * kCyclesPerStep / static_cast<double>(scalar - reading);
    found.push_back(static_cast<double>(vector - reading) * cycles_per_ns /
                    static_cast<double>(kSteps));
  }
  const double cycles = MedianOf(std::move(found));
  const double whole = std::round(cycles);
  const bool is_likely =
      std::abs(cycles - whole) <= kMostOff && whole >= kLeastLatency && whole <= kMostLatency;
  return is_likely ? whole : 0;
}

double HostCoreProbe::ClockMhz(std::uint32_t vector_bytes) {
  // The clock moves by 0.6 % in a millisecond, so the reading that ended one round also serves the
  // next if that follows at once.
  constexpr std::uint64_t kHoldsNs = 50'000;
  const CoreKernels* kernels = KernelsFor(vector_bytes);
  if (std::exchange(chain_, kernels) != kernels) clock_mhz_ = 0;
  if (clock_mhz_ > 0 && kernels == nullptr && stopwatch_.NowNs() - clock_read_ns_ < kHoldsNs) {
    return clock_mhz_;
  }
  const std::uint64_t reading = ReadingNs(stopwatch_);
  const double cycles = kernels != nullptr ? latency_ : kCyclesPerStep;  // of a step
  const std::uint64_t steps = static_cast<std::uint64_t>(kChainCycles / cycles) / 8 * 8;
  ClockReading clock(clock_mhz_);
  do {
    const std::uint64_t start = stopwatch_.NowNs();
    if (kernels != nullptr) {
      kernels->dependent_multiply_adds(steps);
    } else {
      DependentSteps(steps);
    }
    const std::uint64_t took = stopwatch_.NowNs() - start;
    if (took <= reading) return 0;  // the stopwatch does not move
    clock.Add(static_cast<double>(steps) * cycles / static_cast<double>(took - reading) *
              kMhzPerPerNs);
  } while (!clock.is_sure());
  clock_mhz_ = clock.mhz();
  clock_read_ns_ = stopwatch_.NowNs();
  return clock_mhz_;
}

void HostCoreProbe::HoldClock(std::uint32_t vector_bytes) {
  constexpr std::uint64_t kSteps = 400;
  const CoreKernels* kernels = KernelsFor(vector_bytes);
  if (kernels != nullptr) kernels->dependent_multiply_adds(kSteps);
}

}  // namespace loopfleet::worker
