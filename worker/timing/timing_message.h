#pragma once
// Encodes and decodes what the daemon and the process that times kernels send each other about
// timing. Replies come from a process that runs hostile code: decoding bounds everything, and the
// reader's ok() is false for malformed input.

#include "kernel/byte_codec.h"
#include "worker/timing/canary.h"
#include "worker/timing/device_meter.h"
#include "worker/timing/sampler.h"

namespace loopfleet::worker {

void Put(ByteWriter& writer, const SamplingPolicy& policy);
SamplingPolicy GetPolicy(ByteReader& reader);

void Put(ByteWriter& writer, const Samples& samples);
// nullopt: malformed or impossible figures.
std::optional<Samples> GetSamples(ByteReader& reader);

void Put(ByteWriter& writer, const DeviceReading& reading);
std::optional<DeviceReading> GetDeviceReading(ByteReader& reader);

void Put(ByteWriter& writer, const CanaryReading& reading);
std::optional<CanaryReading> GetCanaryReading(ByteReader& reader);

}  // namespace loopfleet::worker
