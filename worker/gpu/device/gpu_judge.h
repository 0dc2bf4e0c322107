#pragma once
// GpuJudge: turns a job's wishes into a sampling policy for a GPU, samples into a measurement, and
// the times of launches into a profile. Pure functions.

#include <expected>
#include <span>
#include <string_view>

#include "common/job/failure.h"
#include "common/job/job_spec.h"
#include "common/job/measurement.h"
#include "common/job/plausibility.h"
#include "common/job/profile.h"
#include "worker/gpu/device/device_sampler.h"
#include "worker/gpu/device/launch_sampler.h"

namespace loopfleet::worker {

// The counterpart of the CPU's kPolicyName. Change it only when a figure means something else.
inline constexpr std::string_view kGpuPolicyName = "cuda5to15x2ms-v2";

// The default policy with the job's own settings applied.
SamplingPolicy GpuPolicyFor(const JobSpec& spec);

enum class DeviceTruth : std::uint8_t { kReal, kFake };

// The measurement by the device's clock. Failures: CUT, UNSTABLE_TIMING. Grade C if another process
// used the device too, or if the device is a fake.
std::expected<Measurement, Failure> JudgeSamples(const DeviceSamples& samples, const JobSpec& spec,
                                                 const WorkDone& work,
                                                 const HardwareFacts& hardware, DeviceTruth truth);

// By roots. `roots`: ProfileMap::launch_roots. COMPILE_ERROR: there are other launches.
std::expected<Profile, Failure> ProfileOfLaunches(std::span<const looptree::TreeRef> roots,
                                                  const LaunchTimes& times);

}  // namespace loopfleet::worker
