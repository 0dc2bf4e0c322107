#pragma once
// ClockRamp: a GPU that had nothing to do runs slowly, and takes tens of milliseconds to notice
// that it has. What is measured is measured after that.

#include <expected>
#include <functional>

#include "common/job/failure.h"
#include "worker/gpu/device/gpu_device.h"

namespace loopfleet::worker {

// Runs `batch`, which gives its nanoseconds, until two in a row agree and some time has passed; for
// half a second at most.
std::expected<void, Failure> AwaitClocks(
    const GpuDevice& device, const std::function<std::expected<double, Failure>()>& batch);

}  // namespace loopfleet::worker
