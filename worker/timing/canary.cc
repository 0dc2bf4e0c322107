#include "worker/timing/canary.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>

#include "worker/isa/processor.h"
#include "worker/timing/statistics.h"

namespace loopfleet::worker {
namespace {

constexpr std::size_t kStep = 256;  // floats; CoreKernels::read takes multiples of it
constexpr std::size_t kAlignment = 4096;
constexpr std::size_t kCommonSecondCache = std::size_t{512} << 10;
// The quickest of so long counts: a core that was idle has a neighbour at first (AwakeCore).
constexpr std::uint64_t kLookNs = 6'000'000;

constexpr std::size_t Floats(std::size_t bytes) { return bytes / sizeof(float) / kStep * kStep; }
constexpr std::size_t kMemoryFloats = Floats(std::size_t{32} << 20);

double TookNs(const Stopwatch& stopwatch, const std::function<void()>& kernel) {
  const std::uint64_t start = stopwatch.NowNs();
  kernel();
  return std::max(static_cast<double>(stopwatch.NowNs() - start), 1.0);
}

}  // namespace

CanarySuite::CanarySuite(const CoreKernels& kernels, std::uint64_t second_cache_bytes)
    : kernels_(kernels),
      cache_floats_(
          std::min(Floats((second_cache_bytes > 0 ? second_cache_bytes : kCommonSecondCache) / 2),
                   kMemoryFloats)),
      memory_(nullptr, &std::free) {}

std::optional<CanaryReading> CanarySuite::Run(const Stopwatch& stopwatch, CoreProbe& probe) {
  if (!memory_) {
    memory_.reset(
        static_cast<float*>(std::aligned_alloc(kAlignment, kMemoryFloats * sizeof(float))));
    if (!memory_) return std::nullopt;
    std::fill_n(memory_.get(), kMemoryFloats, 1.0F);
  }
  // The last cache may hold it all, or a part that changes.
  EvictFromCaches(memory_.get(), kMemoryFloats * sizeof(float));
  volatile float sink = 0;
  CanaryReading reading;
  reading.took[static_cast<std::size_t>(Canary::kMemory)] =
      TookNs(stopwatch, [&] { sink = kernels_.read(memory_.get(), kMemoryFloats); });
  double arithmetic = std::numeric_limits<double>::infinity();
  double cache = arithmetic;
  const std::uint64_t begun = stopwatch.NowNs();
  do {
    arithmetic = std::min(
        arithmetic, TookNs(stopwatch, [&] { kernels_.multiply_adds(kCanaryArithmeticSteps); }));
    cache = std::min(
        cache, TookNs(stopwatch, [&] { sink = kernels_.read(memory_.get(), cache_floats_); }));
  } while (stopwatch.NowNs() - begun < kLookNs);
  kernels_.multiply_adds(kCanaryArithmeticSteps);  // reading lets the clock of wide vectors go
  const double clock = probe.ClockMhz(kernels_.vector_bytes);
  const double per_ns = clock > 0 ? clock / kMhzPerPerNs : 1;
  reading.took[static_cast<std::size_t>(Canary::kArithmetic)] = arithmetic * per_ns;
  reading.took[static_cast<std::size_t>(Canary::kSecondCache)] = cache * per_ns;
  return reading;
}

std::array<double, kCanaries> CanaryDriftDetector::Medians() const {
  std::array<double, kCanaries> medians{};
  for (std::size_t canary = 0; canary < kCanaries; ++canary) {
    std::vector<double> values;
    for (const Timed& timed : window_) values.push_back(timed.reading.took[canary]);
    std::ranges::sort(values);
    medians[canary] = values[values.size() / 2];
  }
  return medians;
}

void CanaryDriftDetector::Observe(const CanaryReading& reading, Instant at) {
  for (const double took : reading.took) {
    if (!std::isfinite(took) || took <= 0) return;
  }
  window_.push_back({reading, at});
  if (window_.size() > options_.window) window_.pop_front();
  if (window_.size() < options_.window) return;
  const std::array<double, kCanaries> now = Medians();
  if (!first_) first_ = now;
  double furthest = -1;
  std::size_t which = 0;
  for (std::size_t canary = 0; canary < kCanaries; ++canary) {
    const double off = std::abs(now[canary] / (*first_)[canary] - 1) / options_.tolerance[canary];
    if (off > furthest) {
      furthest = off;
      which = canary;
    }
  }
  ratio_ = now[which] / (*first_)[which];
  if (furthest > 1) {
    drifting_ = static_cast<Canary>(which);
  } else {
    drifting_.reset();
    steady_until_ = window_.front().at;
  }
}

}  // namespace loopfleet::worker
