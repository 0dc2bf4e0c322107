#pragma once
// The fields of what the daemon and the process that times kernels send each other about timing.
// Replies come from a process that runs hostile code: impossible figures are junk.

#include <cmath>

#include "kernel/byte_codec.h"
#include "worker/timing/canary.h"
#include "worker/timing/device_meter.h"
#include "worker/timing/sampler.h"

namespace loopfleet::worker {

inline bool IsAmount(double value) { return std::isfinite(value) && value >= 0; }

template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, SamplingPolicy>& policy);
template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, Samples>& samples);
template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, DeviceReading>& reading);
template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, CanaryReading>& reading);

}  // namespace loopfleet::worker
