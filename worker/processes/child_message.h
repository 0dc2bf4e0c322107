#pragma once
// The private messages between the daemon and its children, sent over a Channel. A child trusts its
// requests. A reply may come from a child that runs hostile code, so decoding one checks every
// bound and returns nullopt for junk.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/job/failure.h"
#include "kernel/compile_message.h"
#include "worker/sandbox/last_words.h"
#include "worker/timing/canary.h"
#include "worker/timing/code_sampler.h"
#include "worker/timing/device_meter.h"
#include "worker/timing/sampler.h"
#include "worker/timing/slot_time.h"
#include "worker/verification/buffer_layout.h"
#include "worker/verification/input_draw.h"

namespace loopfleet::worker {

inline constexpr std::size_t kMaxExecutorReplyBytes = std::size_t{1} << 20;

// What compilers are asked: kernel/compile_message.h.

// ---- reference ----------------------------------------------------------------------------------

inline constexpr std::size_t kMaxReferenceReplyBytes = 4096;

// Sent with two descriptors: the memory of the inputs and that of the reference. `ir` may be any
// tree of the program.
struct ReferenceRequest {
  InputSeed seed;
  std::uint64_t inputs_size = 0;
  std::uint64_t reference_size = 0;
  std::string ir;
  std::uint64_t time_limit_s = 0;
};
std::string Encode(const ReferenceRequest& request);
std::optional<ReferenceRequest> DecodeReferenceRequest(std::string_view bytes);

struct ReferenceReply {
  std::vector<bool> exact;  // for each output: the comparison is exact
  std::string refusal;      // why the program cannot be verified (UNSUPPORTED); empty: it can
};
std::string Encode(const ReferenceReply& reply);
std::optional<ReferenceReply> DecodeReferenceReply(std::string_view bytes);

// ---- executor -----------------------------------------------------------------------------------

// The number of places in which an executor keeps memory mapped. The daemon chooses the place of
// each mapping.
inline constexpr std::uint32_t kInputSlots = 4;
inline constexpr std::uint32_t kArenaPlaces = 80;

// Maps the given buffers of the memory whose descriptor is sent along, and no other part of it, in
// place of what the place held. With size 0 and no descriptor: empties the place. Has no reply.
struct MapRequest {
  enum class Kind : std::uint8_t { kInputs, kArena };  // inputs are mapped read-only
  Kind kind = Kind::kInputs;
  std::uint32_t place = 0;
  std::uint64_t size = 0;  // of the memory, in bytes
  std::vector<PlacedBuffer> buffers;
};
// What to call: the code at `entry` with pointers to the inputs and then to the arena's first
// `arena_buffers` buffers.
struct CallSlots {
  std::uint64_t entry = 0;
  std::uint32_t inputs = 0;
  std::uint32_t arena = 0;
  std::uint32_t arena_buffers = UINT32_MAX;
};
// Runs a kernel in batches of 1, 2, 4, ... runs until one batch lasts at least `batch_ns`. Answered
// by RunDone.
struct RunRequest {
  std::uint64_t number = 0;  // of the request, repeated in its reply
  CallSlots call;
  std::uint64_t batch_ns = 0;  // least duration of the last batch; 0: a single run
  std::uint64_t time_limit_s = 0;
};
// Times a kernel for one round. Answered by Timed.
struct TimeRequest {
  std::uint64_t number = 0;
  CallSlots call;
  SamplingPolicy policy;
  std::uint64_t time_limit_s = 0;
};
// Measures what the core and its memory can do. Answered by DeviceReply.
struct MeterRequest {
  std::uint64_t number = 0;
  std::uint64_t stream_bytes = 0;          // StreamBytes
  std::vector<std::uint64_t> load_blocks;  // sizes in bytes to measure LoadLatencyNs of
  std::uint64_t time_limit_s = 0;
};
// Runs the canaries. Answered by CanaryReply.
struct CanaryRequest {
  std::uint64_t number = 0;
  std::uint64_t probe_steps = 0;
  std::uint64_t second_cache_bytes = 0;
  std::uint64_t time_limit_s = 0;
};
// Notes where a kernel is while it runs again and again. For a child of the role kProfiler.
// Answered by Sampled.
struct SampleRequest {
  std::uint64_t number = 0;
  CallSlots call;
  CodeSampler::Plan plan;
  std::uint64_t time_limit_s = 0;
};
using ExecutorRequest =
    std::variant<MapRequest, RunRequest, TimeRequest, MeterRequest, CanaryRequest, SampleRequest>;

struct RunDone {
  std::uint64_t number = 0;
  double run_ns = 0;  // duration of one run in the last batch
};
struct Timed {
  std::uint64_t number = 0;
  Samples samples;
  SlotTime outside;  // core time outside the samples, from when the child was free
};
struct DeviceReply {
  std::uint64_t number = 0;
  DeviceReading reading;
};
struct CanaryReply {
  std::uint64_t number = 0;
  std::optional<CanaryReading> reading;  // nullopt: not enough memory to run them
};
struct Sampled {
  std::uint64_t number = 0;
  CodeSamples samples;
};
// The index is the tag of a reply, and so it is of a last word.
using ExecutorReply =
    std::variant<RunDone, Timed, DeviceReply, CanaryReply, Crashed, Sampled, ForbiddenCall>;
static_assert(
    std::is_same_v<
        std::variant_alternative_t<static_cast<std::size_t>(LastWordTag::kCrashed), ExecutorReply>,
        Crashed>);

std::string Encode(const ExecutorRequest& request);
std::optional<ExecutorRequest> DecodeExecutorRequest(std::string_view bytes);
std::string Encode(const ExecutorReply& reply);
std::optional<ExecutorReply> DecodeExecutorReply(std::string_view bytes);

}  // namespace loopfleet::worker
