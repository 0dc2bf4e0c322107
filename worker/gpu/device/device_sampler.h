#pragma once
// DeviceSampler: times a kernel on a GPU by a fixed policy (docs/GPU.md). A sample is the time of a
// batch of runs, at least some milliseconds between two events of the device's own clock, divided
// by the number of runs. The same runs raise the clocks before the first sample. A kernel that
// takes less time than its launch is launched many times at once, as a graph. In cold measurements
// no run finds its buffers in the cache: the runs rotate over enough copies of the buffers, or the
// cache is filled with other data before each run.
//
// A sample taken while heat or power throttled the device is flagged, and repeated while the
// patience lasts. Used by one thread.

#include <expected>
#include <optional>

#include "common/job/failure.h"
#include "worker/gpu/device/gpu_device.h"
#include "worker/gpu/device/nvml.h"
#include "worker/timing/sampler.h"

namespace loopfleet::worker {

struct DeviceSamples {
  Samples samples;                   // iterations: runs per batch
  bool is_batched = false;           // launched as graphs
  int copies = 1;                    // copies of the buffers that the runs rotated over
  SensorReading before;              // before the first batch; all 0: no sensors
  SensorReading after;               // during the last batch
  std::optional<DeviceState> state;  // over all readings; none: no sensors
  int throttled = 0;                 // samples flagged as throttled
  bool was_shared = false;           // another process had a context, before or after
};

// `sensors` may be null. The kernel's buffers must hold inputs.
std::expected<DeviceSamples, Failure> TakeDeviceSamples(GpuDevice& device,
                                                        GpuDevice::Loaded& kernel,
                                                        const SamplingPolicy& policy,
                                                        DeviceSensors* sensors);

}  // namespace loopfleet::worker
