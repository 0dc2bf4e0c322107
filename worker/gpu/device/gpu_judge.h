#pragma once
// GpuJudge: what a job asks for of the sampler on a GPU, and what its samples say.

#include <expected>
#include <string_view>

#include "common/job/failure.h"
#include "common/job/job_spec.h"
#include "common/job/measurement.h"
#include "common/job/plausibility.h"
#include "worker/gpu/device/device_sampler.h"

namespace loopfleet::worker {

// As kPolicyName is for the CPU: change it only when a figure means something else.
inline constexpr std::string_view kGpuPolicyName = "cuda5to15x2ms-v2";

// What a job asks for, over the defaults.
SamplingPolicy GpuPolicyFor(const JobSpec& spec);

enum class DeviceTruth : std::uint8_t { kReal, kFake };

// The figure, as the device's clock says, or why there is none: CUT, UNSTABLE_TIMING. Graded C if
// another process had the device, too, or the device is none.
std::expected<Measurement, Failure> JudgeSamples(const DeviceSamples& samples, const JobSpec& spec,
                                                 const WorkDone& work,
                                                 const HardwareFacts& hardware, DeviceTruth truth);

}  // namespace loopfleet::worker
