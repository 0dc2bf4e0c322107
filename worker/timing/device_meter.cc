#include "worker/timing/device_meter.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "worker/timing/canary.h"
#include "worker/timing/contention_baseline.h"
#include "worker/timing/host_core_probe.h"
#include "worker/timing/statistics.h"

namespace loopfleet::worker {
namespace {

constexpr std::uint64_t kLeastStreamBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMostStreamBytes = std::uint64_t{256} << 20;
constexpr std::size_t kAlignment = 4096;
constexpr int kPasses = 4;   // the first one is a warm-up
constexpr int kGroups = 32;  // of probes, half before the streams and half after
constexpr int kProbesInGroup = 15;
constexpr std::uint64_t kPeakSteps = 10'000;  // about 15 us

using Floats = std::unique_ptr<float, decltype(&std::free)>;

// Bytes per second of the quickest pass.
double BestRate(const Stopwatch& stopwatch, std::size_t bytes, const std::function<void()>& pass) {
  double best = 0;
  for (int i = 0; i < kPasses; ++i) {
    const std::uint64_t start = stopwatch.NowNs();
    pass();
    const auto took = static_cast<double>(std::max<std::uint64_t>(stopwatch.NowNs() - start, 1));
    constexpr double kNsPerSecond = 1e9;
    if (i > 0) best = std::max(best, static_cast<double>(bytes) / took * kNsPerSecond);
  }
  return best;
}

void MeasureStreams(const CoreKernels& kernels, const Stopwatch& stopwatch, std::size_t bytes,
                    DeviceReading& reading) {
  if (bytes == 0) return;
  const Floats memory(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)), &std::free);
  if (!memory) return;
  const std::size_t count = bytes / sizeof(float);
  std::fill_n(memory.get(), count, 1.0F);
  volatile float sink = 0;
  reading.read_bytes_per_second =
      BestRate(stopwatch, bytes, [&] { sink = kernels.read(memory.get(), count); });
  // Three arrays of equal length, in the same memory.
  constexpr std::size_t kStep = 256;
  const std::size_t part = count / 3 / kStep * kStep;
  float* const a = memory.get();
  reading.triad_bytes_per_second = BestRate(
      stopwatch, 3 * part * sizeof(float), [&] { kernels.triad(a, a + part, a + 2 * part, part); });
}

double PeakStepsNs(const Stopwatch& stopwatch, const CoreKernels& kernels) {
  const std::uint64_t start = stopwatch.NowNs();
  kernels.multiply_adds(kPeakSteps);
  return static_cast<double>(std::max<std::uint64_t>(stopwatch.NowNs() - start, 1));
}

}  // namespace

double PeakCycles(double measured, double least) {
  constexpr double kMisjudged = 0.95;  // a core that is quicker has more units than is known
  return least <= 0 || measured < kMisjudged * least ? measured : FewestCycles(measured, least);
}

double WideVectorFactor(std::vector<double> wide_to_narrow) {
  // As many units for wide vectors, or half as many. A neighbour slows both, but not alike.
  if (wide_to_narrow.empty()) return 1;
  return std::clamp(std::round(MedianOf(std::move(wide_to_narrow))), 1.0, 2.0);
}

std::size_t StreamBytes(const HardwareFacts& hardware) {
  const std::uint64_t cache = hardware.l3_bytes;
  const std::uint64_t bytes =
      std::max(std::clamp(3 * cache, kLeastStreamBytes, kMostStreamBytes), 2 * cache);
  const bool is_too_much = hardware.memory_bytes > 0 && bytes > hardware.memory_bytes / 4;
  return is_too_much ? 0 : bytes;
}

DeviceReading MeasureDevice(const CoreKernels& kernels, const Stopwatch& stopwatch,
                            std::size_t stream_bytes) {
  DeviceReading reading;
  HostCoreProbe probe(kernels, stopwatch);
  reading.probe_steps = probe.steps();
  reading.canary_flop = kCanaryArithmeticSteps * kernels.flop_per_step;
  std::vector<double> clocks;
  ContentionBaseline arithmetic;
  std::vector<double> wide_to_narrow;
  const auto look = [&](int groups) {
    for (int group = 0; group < groups; ++group) {
      const double clock = probe.ClockMhz(0);
      clocks.push_back(clock);
      const double per_ns = clock > 0 ? clock / kMhzPerPerNs : 1;
      std::vector<double> cycles;
      for (int i = 0; i < kProbesInGroup; ++i) {
        cycles.push_back(static_cast<double>(probe.ThroughputNs()) * per_ns);
      }
      reading.probe_cycles.push_back(*std::ranges::min_element(cycles));
      const double took = PeakStepsNs(stopwatch, kernels);
      const double wide_clock = probe.ClockMhz(kernels.vector_bytes);
      arithmetic.Observe(wide_clock > 0 ? took * wide_clock / kMhzPerPerNs : took);
      if (kernels.narrower != nullptr) {
        wide_to_narrow.push_back(took / PeakStepsNs(stopwatch, *kernels.narrower));
      }
    }
  };
  look(kGroups / 2);
  MeasureStreams(kernels, stopwatch, stream_bytes, reading);
  look(kGroups / 2);
  reading.clock_mhz = MedianOf(std::move(clocks));
  if (probe.LeastCycles() > 0) {
    reading.least_probe_cycles = probe.LeastCycles() + static_cast<double>(probe.EmptyNs()) *
                                                           reading.clock_mhz / kMhzPerPerNs;
  }
  const double least = static_cast<double>(kPeakSteps) * kernels.least_cycles_per_step *
                       WideVectorFactor(std::move(wide_to_narrow));
  reading.flop_per_cycle = static_cast<double>(kPeakSteps * kernels.flop_per_step) /
                           PeakCycles(arithmetic.cycles(), least);
  return reading;
}

double ReferenceMhz(double clock_mhz) {
  constexpr double kGrid = 100;
  return std::round(clock_mhz / kGrid) * kGrid;
}

DevicePeaks PeaksOf(const DeviceReading& reading, double reference_mhz) {
  constexpr double kHertzPerMhz = 1e6;
  constexpr double kNsPerSecond = 1e9;
  const double cycles_per_second =
      reading.clock_mhz > 0 ? (reference_mhz > 0 ? reference_mhz : reading.clock_mhz) * kHertzPerMhz
                            : kNsPerSecond;
  return {.flop_per_second = reading.flop_per_cycle * cycles_per_second,
          .read_bytes_per_second = reading.read_bytes_per_second,
          .triad_bytes_per_second = reading.triad_bytes_per_second};
}

}  // namespace loopfleet::worker
