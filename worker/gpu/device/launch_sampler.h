#pragma once
// LaunchSampler: times the launches of a kernel one by one, for a profile by roots
// (docs/PROFILE.md). Plain runs and runs with an event between every two launches take turns, after
// the clocks have risen. Short runs are repeated within a turn. Used by one thread.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <vector>

#include "common/job/failure.h"
#include "worker/gpu/device/gpu_device.h"

namespace loopfleet::worker {

inline constexpr std::size_t kMostLaunchTurns = 41;
// Of a kernel that is too long to be repeated within a turn: so many runs at most, all in all.
inline constexpr int kMostLongRuns = 16;

struct LaunchTimes {
  double plain_ns = 0;                     // of one run without events, in the quickest turn
  double marked_ns = 0;                    // of one run with them, in the quickest turn
  std::uint64_t runs = 1;                  // of a turn
  std::vector<std::vector<double>> turns;  // by turn, then by launch: nanoseconds of all its runs
};

// The kernel's buffers must hold inputs.
std::expected<LaunchTimes, Failure> TakeLaunchTimes(GpuDevice& device, GpuDevice::Loaded& kernel);

}  // namespace loopfleet::worker
