#pragma once
// GpuMessage: the private messages between the daemon of a GPU worker and its device child, over
// Channel. Both are of the same build. The child runs no job code on this host, but decoding still
// bounds everything in its replies.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/job/failure.h"
#include "kernel/kernel.h"
#include "worker/gpu/device/device_sampler.h"
#include "worker/gpu/device/launch_sampler.h"
#include "worker/verification/buffer_layout.h"

namespace loopfleet::worker {

inline constexpr std::size_t kMaxGpuReplyBytes = std::size_t{2} << 20;
// The times of all launches fit.
static_assert(kMostLaunchTurns * (kMostLaunches + 1) * sizeof(double) < kMaxGpuReplyBytes * 3 / 4);

// A block of the daemon's memory. The request carries its file descriptor.
struct SharedBuffers {
  std::uint64_t size = 0;  // bytes of the memory
  std::vector<PlacedBuffer> buffers;
};

// Checks that the device computes the canary correctly and that its memory keeps what is written.
// DEVICE_FAULT if not. Answered by GpuDone.
struct GpuCheckRequest {};
// Loads a kernel in place of the previous one and runs it once. Carries two descriptors: the inputs
// and the outputs. Answered by GpuDone.
struct GpuRunRequest {
  std::string image;  // a GpuImage
  std::vector<BufferSpec> specs;
  SharedBuffers inputs;
  SharedBuffers outputs;
};
// Times the loaded kernel on random floats, then runs it again on its original inputs with poisoned
// outputs. Answered by DeviceSamples.
struct GpuTimeRequest {
  SamplingPolicy policy;
};
// The same with each launch of the kernel timed by itself. Answered by LaunchTimes.
struct GpuLaunchesRequest {};
using GpuRequest = std::variant<GpuCheckRequest, GpuRunRequest, GpuTimeRequest, GpuLaunchesRequest>;

struct GpuDone {
  std::uint64_t took_ns = 0;  // duration of the run, copies included, by the host's clock
};
using GpuAnswer = std::expected<std::variant<GpuDone, DeviceSamples, LaunchTimes>, Failure>;
struct GpuReply {
  GpuAnswer answer;
  bool is_lost = false;  // the child cannot use the device any more and must be replaced
};

std::string Encode(const GpuRequest& request);
std::optional<GpuRequest> DecodeGpuRequest(std::string_view bytes);
std::string Encode(const GpuReply& reply);
std::optional<GpuReply> DecodeGpuReply(std::string_view bytes);

}  // namespace loopfleet::worker
