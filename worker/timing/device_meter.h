#pragma once
// DeviceMeter: measures the peak rates of the timing core and its memory: clock, multiply-adds,
// streams from and to memory. Runs at the worker's start in the process that times kernels.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/result.h"
#include "common/job/hardware_facts.h"
#include "worker/isa/core_kernels.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {

struct DeviceReading {
  std::uint64_t probe_steps = 0;  // of a throughput probe
  // By PeakCycles of the fifth best of the groups. Per nanosecond if no clock is known.
  double flop_per_cycle = 0;
  std::uint64_t canary_flop = 0;     // of one arithmetic canary
  double clock_mhz = 0;              // median; 0: not known
  std::vector<double> probe_cycles;  // the quickest of each group of probes
  // The fewest cycles that a probe can take: those of its steps, and the time of an empty probe. 0:
  // unknown.
  double least_probe_cycles = 0;
  double read_bytes_per_second = 0;  // best of some passes; 0: not measured
  double triad_bytes_per_second = 0;
  std::vector<double> load_ns;  // LoadLatencyNs of each block that was asked for; 0: not measured
  friend bool operator==(const DeviceReading&, const DeviceReading&) = default;
};

// How much memory the streams cover: three times the last cache, but 64 to 256 MiB, and at least
// twice the cache. 0: that is more than a quarter of the host's memory.
std::size_t StreamBytes(const HardwareFacts& hardware);

// Takes about 0.1 s with streams of 64 MiB, 0.7 s with 600. If `stream_bytes` is 0 or cannot be
// allocated, bandwidth is not measured.
DeviceReading MeasureDevice(const CoreKernels& kernels, const Stopwatch& stopwatch,
                            std::size_t stream_bytes);

// How many times as long a step of wide vectors takes as one of half the width, from such ratios: 1
// or 2; 1 without any.
double WideVectorFactor(std::vector<double> wide_to_narrow);

// The cycles of the arithmetic that took `measured` at best, from the number of the core's units:
// so a peak does not vary from start to start, nor with a neighbour. `least`: as in FewestCycles;
// 0: unknown, `measured` is returned.
double PeakCycles(double measured, double least);

// The reference clock of a worker with this clock: rounded to 100 MHz, so that workers of one class
// agree although each measured at a different moment.
double ReferenceMhz(double clock_mhz);

// At the reference clock; at the measured one if `reference_mhz` is 0.
DevicePeaks PeaksOf(const DeviceReading& reading, double reference_mhz);

}  // namespace loopfleet::worker
