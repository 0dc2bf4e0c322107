#pragma once
// DeviceSampler: times a kernel on a GPU by a fixed policy (docs/GPU.md). A sample is a batch of
// runs of at least some milliseconds between two events of the device's own clock, divided by its
// runs; before the first one the same runs let the clocks rise. Kernels that take less time than
// launching them does are launched many at a time, as a graph. Cold: each run finds nothing of what
// it works on in the cache, as there are so many copies of it that it was pushed out, or as the
// cache was filled with something else before.
//
// A sample during which the device was held back by heat or power is flagged, and taken again as
// long as the budget lasts.

#include <expected>
#include <optional>

#include "common/job/failure.h"
#include "worker/gpu/device/gpu_device.h"
#include "worker/gpu/device/nvml.h"
#include "worker/timing/sampler.h"

namespace loopfleet::worker {

struct DeviceSamples {
  Samples samples;                   // iterations: runs in each batch
  bool is_batched = false;           // launched as graphs
  int copies = 1;                    // of the buffers, that runs went round among
  SensorReading before;              // of the sensors, all 0 without any
  SensorReading after;               // while the last batch ran
  std::optional<DeviceState> state;  // over all readings; none: no sensors
  int throttled = 0;                 // samples that were flagged so
  bool was_shared = false;           // another process had a context on the device, before or after
};

// `sensors` may be null. The kernel's buffers hold inputs already.
std::expected<DeviceSamples, Failure> TakeDeviceSamples(GpuDevice& device,
                                                        GpuDevice::Loaded& kernel,
                                                        const SamplingPolicy& policy,
                                                        DeviceSensors* sensors);

}  // namespace loopfleet::worker
