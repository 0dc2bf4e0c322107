#pragma once
// The private messages between the daemon of a GPU worker and the child that has the device, over
// Channel. Both are ours and of one build; the child runs no code of jobs on this host, but
// decoding its replies bounds everything all the same.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/job/failure.h"
#include "worker/backend/kernel.h"
#include "worker/gpu/device/device_sampler.h"
#include "worker/verification/buffer_layout.h"

namespace loopfleet::worker {

inline constexpr std::size_t kMaxGpuReplyBytes = std::size_t{1} << 20;

// Memory of the daemon that a request comes with a descriptor of.
struct SharedBuffers {
  std::uint64_t size = 0;  // of the memory
  std::vector<PlacedBuffer> buffers;
};

// Whether the device computes a known kernel, and its memory keeps what is written: DEVICE_FAULT
// otherwise. Answered by GpuDone.
struct GpuCheckRequest {};
// Loads a kernel, in the place of the one before, and runs it once. Comes with two descriptors: of
// the inputs and of the outputs. Answered by GpuDone.
struct GpuRunRequest {
  std::string image;  // a GpuImage
  std::vector<BufferSpec> specs;
  SharedBuffers inputs;
  SharedBuffers outputs;
};
// Times that kernel, on random floats; then runs it once more on the inputs it was loaded with, its
// outputs poisoned before. Answered by DeviceSamples.
struct GpuTimeRequest {
  SamplingPolicy policy;
};
using GpuRequest = std::variant<GpuCheckRequest, GpuRunRequest, GpuTimeRequest>;

struct GpuDone {
  std::uint64_t took_ns = 0;  // of the run alone, by the clock of the host
};
using GpuAnswer = std::expected<std::variant<GpuDone, DeviceSamples>, Failure>;
struct GpuReply {
  GpuAnswer answer;
  bool is_lost = false;  // the child can do nothing more on the device, and is to be replaced
};

std::string Encode(const GpuRequest& request);
std::optional<GpuRequest> DecodeGpuRequest(std::string_view bytes);
std::string Encode(const GpuReply& reply);
std::optional<GpuReply> DecodeGpuReply(std::string_view bytes);

}  // namespace loopfleet::worker
