#pragma once
// ClockRamp: raises an idle GPU's clock before a measurement. An idle GPU runs at a low clock and
// takes tens of milliseconds under load to raise it.

#include <expected>
#include <functional>

#include "common/job/failure.h"
#include "worker/gpu/device/gpu_device.h"

namespace loopfleet::worker {

// Runs `batch`, which returns its nanoseconds, until two in a row agree and at least 50 ms have
// passed; for half a second at most.
std::expected<void, Failure> WarmUpClocks(
    const GpuDevice& device, const std::function<std::expected<double, Failure>()>& batch);

}  // namespace loopfleet::worker
