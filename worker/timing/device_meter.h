#pragma once
// DeviceMeter: what the timing core and its memory can do at most, measured at the worker's start
// in the process that times kernels: clock, multiply-adds, streams from and to memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/result.h"
#include "common/job/hardware_facts.h"
#include "worker/timing/core_kernels.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {

struct DeviceReading {
  std::uint64_t probe_steps = 0;  // of a throughput probe
  double flop_per_cycle = 0;  // fifth best of the groups; per nanosecond where there is no clock
  std::uint64_t canary_flop = 0;     // of one arithmetic canary
  double clock_mhz = 0;              // median; 0: not known
  std::vector<double> probe_cycles;  // the quickest of each group of probes
  // Of its steps as CoreKernels has it, and of what comes with them; 0: not known.
  double least_probe_cycles = 0;
  double read_bytes_per_second = 0;  // best of some passes; 0: not measured
  double triad_bytes_per_second = 0;
  friend bool operator==(const DeviceReading&, const DeviceReading&) = default;
};

// Takes about 150 ms. `cache_bytes`: of the last cache; the streams go through several times as
// much. Without memory for that, bandwidth is not measured.
DeviceReading MeasureDevice(const CoreKernels& kernels, const Stopwatch& stopwatch,
                            std::uint64_t cache_bytes);

// The reference clock that a worker with this clock states its times at: rounded to 100 MHz, so
// that workers of one class agree on it though each measured a moment of its own.
double ReferenceMhz(double clock_mhz);

// At the reference clock, where one is known.
DevicePeaks PeaksOf(const DeviceReading& reading, double reference_mhz);

}  // namespace loopfleet::worker
