#include "worker/gpu/device/clock_ramp.h"

#include <chrono>
#include <cmath>

#include "common/base/result.h"

namespace loopfleet::worker {
namespace {

constexpr double kSteady = 0.01;  // largest relative difference between two batches
// The governors of current devices need tens of milliseconds.
constexpr std::chrono::milliseconds kLeast{50};
constexpr std::chrono::milliseconds kMost{500};

}  // namespace

std::expected<void, Failure> WarmUpClocks(
    const GpuDevice& device, const std::function<std::expected<double, Failure>()>& batch) {
  const std::chrono::nanoseconds start = device.Now();
  double last = 0;
  for (;;) {
    LF_TRY(const double ns, batch());
    const std::chrono::nanoseconds spent = device.Now() - start;
    const bool is_steady = last > 0 && std::abs(ns - last) <= kSteady * last;
    if ((is_steady && spent >= kLeast) || spent >= kMost) return {};
    last = ns;
  }
}

}  // namespace loopfleet::worker
