#pragma once
// The private messages between the daemon and its children, over Channel. Requests go to a child,
// which trusts them; replies come from a child that may run hostile code, so decoding one bounds
// everything and gives nullopt for junk.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/job/failure.h"
#include "worker/backend/kernel.h"
#include "worker/sandbox/last_words.h"
#include "worker/timing/canary.h"
#include "worker/timing/device_meter.h"
#include "worker/timing/sampler.h"
#include "worker/timing/slot_time.h"
#include "worker/verification/buffer_layout.h"

namespace loopfleet::worker {

inline constexpr std::size_t kMaxRequestBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxCompileReplyBytes = std::size_t{64} << 20;  // mostly the object
inline constexpr std::size_t kMaxExecutorReplyBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxKernelBuffers = 1024;

// ---- compiler -----------------------------------------------------------------------------------

struct CompileRequest {
  std::uint64_t code_address = 0;  // that the code is linked for
  std::uint64_t max_code_bytes = 0;
  std::uint32_t threads = 1;  // that the kernel may use
  std::string ir;             // the tree's IR text
};
std::string Encode(const CompileRequest& request);
std::optional<CompileRequest> DecodeCompileRequest(std::string_view bytes);

struct CompiledKernel {
  Kernel kernel;
  CodeImage code;
};
using CompileReply = std::expected<CompiledKernel, Failure>;
std::string EncodeCompileReply(const CompileReply& reply);
std::optional<CompileReply> DecodeCompileReply(std::string_view bytes);

// ---- reference ----------------------------------------------------------------------------------

inline constexpr std::size_t kMaxReferenceReplyBytes = 4096;

// Comes with two descriptors: the inputs' memory and the reference's. Any tree of the program will
// do.
struct ReferenceRequest {
  std::uint64_t seed = 0;
  std::uint64_t inputs_size = 0;
  std::uint64_t reference_size = 0;
  std::string ir;
  std::uint64_t time_limit_s = 0;
};
std::string Encode(const ReferenceRequest& request);
std::optional<ReferenceRequest> DecodeReferenceRequest(std::string_view bytes);

struct ReferenceReply {
  std::vector<bool> exact;  // for each output, whether only equality will do
  std::string refusal;      // why nothing can be verified (UNSUPPORTED); "": it can
};
std::string Encode(const ReferenceReply& reply);
std::optional<ReferenceReply> DecodeReferenceReply(std::string_view bytes);

// ---- executor -----------------------------------------------------------------------------------

// How many pieces of memory an executor keeps mapped, each in a place that the daemon chooses.
inline constexpr std::uint32_t kInputsPlaces = 4;
inline constexpr std::uint32_t kArenaPlaces = 80;

// Maps the pages of the buffers, and nothing else, of the memory whose descriptor comes with it, in
// the place of what is there; of size 0 and without a descriptor: empties the place. Not answered.
struct MapRequest {
  enum class Kind : std::uint8_t { kInputs, kArena };  // inputs are mapped to be read only
  Kind kind = Kind::kInputs;
  std::uint32_t place = 0;
  std::uint64_t size = 0;  // of the memory
  std::vector<PlacedBuffer> buffers;
};
// What to call: the code at `entry` with pointers to the inputs and then to the arena's buffers.
struct CallPlaces {
  std::uint64_t entry = 0;
  std::uint32_t inputs = 0;
  std::uint32_t arena = 0;
};
// Runs a kernel once, then twice as often as before until one such batch lasts long enough.
// Answered by RunDone.
struct RunRequest {
  std::uint64_t number = 0;  // of the request; its reply has the same
  CallPlaces call;
  std::uint64_t batch_ns = 0;  // that the last batch lasts at least; 0: one run will do
  std::uint64_t time_limit_s = 0;
};
// Times a kernel for one round. Answered by Timed.
struct TimeRequest {
  std::uint64_t number = 0;
  CallPlaces call;
  SamplingPolicy policy;
  std::uint64_t time_limit_s = 0;
};
// Measures what the core and its memory can do. Answered by DeviceReply.
struct MeterRequest {
  std::uint64_t number = 0;
  std::uint64_t last_cache_bytes = 0;
  std::uint64_t time_limit_s = 0;
};
// Runs the canaries. Answered by CanaryReply.
struct CanaryRequest {
  std::uint64_t number = 0;
  std::uint64_t probe_steps = 0;
  std::uint64_t second_cache_bytes = 0;
  std::uint64_t last_cache_bytes = 0;
  std::uint64_t time_limit_s = 0;
};
using ExecutorRequest =
    std::variant<MapRequest, RunRequest, TimeRequest, MeterRequest, CanaryRequest>;

struct RunDone {
  std::uint64_t number = 0;
  double run_ns = 0;  // of one run, in the last batch
};
struct Timed {
  std::uint64_t number = 0;
  Samples samples;
  SlotTime outside;  // from when the child was free for this request to its reply
};
struct DeviceReply {
  std::uint64_t number = 0;
  DeviceReading reading;
};
struct CanaryReply {
  std::uint64_t number = 0;
  std::optional<CanaryReading> reading;  // empty: there was no memory for them
};
using ExecutorReply =
    std::variant<RunDone, Timed, DeviceReply, CanaryReply, Crashed, ForbiddenCall>;

std::string Encode(const ExecutorRequest& request);
std::optional<ExecutorRequest> DecodeExecutorRequest(std::string_view bytes);
std::string Encode(const ExecutorReply& reply);
std::optional<ExecutorReply> DecodeExecutorReply(std::string_view bytes);

}  // namespace loopfleet::worker
