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
#include "worker/buffer_layout.h"
#include "worker/kernel.h"
#include "worker/timing/sampler.h"

namespace loopfleet::worker {

inline constexpr std::size_t kMaxRequestBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxCompileReplyBytes = std::size_t{64} << 20;  // mostly the object
inline constexpr std::size_t kMaxExecutorReplyBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxKernelBuffers = 1024;

// Exit codes by which a child says why it gives up.
inline constexpr int kExitOk = 0;            // its channel was closed
inline constexpr int kExitOutOfMemory = 12;  // an allocation failed
inline constexpr int kExitBadRequest = 76;   // the daemon sent what cannot be read: a bug

// ---- compiler: the request is a tree's IR text --------------------------------------------------

using CompileReply = std::expected<Kernel, Failure>;
std::string EncodeCompileReply(const CompileReply& reply);
std::optional<CompileReply> DecodeCompileReply(std::string_view bytes);

// ---- executor -----------------------------------------------------------------------------------

// How many workloads an executor keeps mapped, each in a place that the daemon chooses.
inline constexpr std::uint32_t kWorkloadPlaces = 4;

// Which descriptors come with a request, in this order.
struct AttachedMemory {
  std::uint64_t inputs_size = 0;  // 0: what is mapped in the place already
  std::uint64_t arena_size = 0;   // 0: the arena of the request before
};

// Links a kernel and runs it once. Answered by RunDone.
struct LoadRequest {
  std::string object;
  std::uint32_t workload_place = 0;
  AttachedMemory attached;
  std::vector<PlacedBuffer> inputs;  // in the workload's memory
  std::vector<PlacedBuffer> others;  // outputs, then scratch, in the arena
  std::uint64_t time_limit_s = 0;
};
// Runs the loaded kernel once more. Answered by RunDone.
struct RunRequest {
  std::uint64_t time_limit_s = 0;
};
// Times the loaded kernel. Answered by Samples.
struct TimeRequest {
  SamplingPolicy policy;
  std::uint64_t time_limit_s = 0;
};
using ExecutorRequest = std::variant<LoadRequest, RunRequest, TimeRequest>;

struct RunDone {
  std::uint64_t run_ns = 0;
};
struct LoadFailed {
  std::string message;
};
using ExecutorReply = std::variant<RunDone, Samples, LoadFailed>;

std::string Encode(const ExecutorRequest& request);
std::optional<ExecutorRequest> DecodeExecutorRequest(std::string_view bytes);
std::string Encode(const ExecutorReply& reply);
std::optional<ExecutorReply> DecodeExecutorReply(std::string_view bytes);

}  // namespace loopfleet::worker
