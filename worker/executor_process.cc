#include "worker/executor_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "worker/verification.h"

namespace loopfleet::worker {
namespace {

// Workloads above this share place 0, so that the child never keeps several big ones mapped.
constexpr std::size_t kBigWorkloadBytes = std::size_t{64} << 20;
constexpr std::size_t kSmallestArena = std::size_t{1} << 20;
// Of the time a child says a repetition took, how far it may exceed what passed here: none, but for
// the rounding of the samples.
constexpr double kClockMargin = 1.001;

Instant Now() { return std::chrono::steady_clock::now(); }

std::uint64_t WholeSeconds(Nanos duration) {
  return static_cast<std::uint64_t>(
             std::chrono::duration_cast<std::chrono::seconds>(duration).count()) +
         1;
}

double TotalNs(const Samples& samples) {
  double total = 0;
  for (const double ns : samples.ns) total += ns * static_cast<double>(samples.iterations);
  return total;
}

}  // namespace

ExecutorProcess::ExecutorProcess(Nursery& nursery, const Options& options,
                                 RestartListener on_restart)
    : nursery_(nursery), options_(options), on_restart_(std::move(on_restart)) {}

Status ExecutorProcess::EnsureChild() {
  if (child_) return {};
  LF_TRY(child_, nursery_.Spawn(ChildRole::kExecutor));
  arena_is_mapped_ = false;
  places_ = {};
  return {};
}

Failure ExecutorProcess::Replace(ErrorKind error) {
  const ChildEnd end = EndChild(*child_, error);
  child_.reset();
  workload_.reset();
  on_restart_(ChildRole::kExecutor, end.cause);
  return ToRunFailure(end, options_.run_limit);
}

template <class Reply>
std::expected<Reply, Failure> ExecutorProcess::Ask(const ExecutorRequest& request,
                                                   std::span<const int> fds, Nanos limit) {
  const Instant deadline = Now() + limit;
  if (const Status sent = child_->channel().Send(Encode(request), deadline, fds); !sent) {
    return std::unexpected(Replace(sent.error().kind));
  }
  const Result<std::string> bytes = child_->channel().Receive(deadline, kMaxExecutorReplyBytes);
  if (!bytes) return std::unexpected(Replace(bytes.error().kind));
  std::optional<ExecutorReply> reply = DecodeExecutorReply(*bytes);
  if (reply && std::holds_alternative<Reply>(*reply)) return std::get<Reply>(*std::move(reply));
  if (reply && std::holds_alternative<LoadFailed>(*reply)) {
    workload_.reset();
    return std::unexpected(
        Failure{.code = FailureCode::kCompileError,
                .message = "linking failed: " + std::get<LoadFailed>(*reply).message});
  }
  return std::unexpected(Replace(ErrorKind::kCorrupt));
}

Status ExecutorProcess::FitArena(std::size_t bytes) {
  const std::size_t have = arena_.bytes().size();
  const bool too_big = have > options_.kept_arena_bytes && bytes <= options_.kept_arena_bytes;
  if (bytes <= have && !too_big) return {};
  arena_ = {};
  arena_is_mapped_ = false;
  LF_TRY(arena_, SharedMemory::Create(std::bit_ceil(std::max(bytes, kSmallestArena))));
  return {};
}

std::uint32_t ExecutorProcess::PlaceFor(const std::shared_ptr<const Workload>& workload) {
  const auto found = std::find(places_.begin(), places_.end(), workload);
  if (found != places_.end()) return static_cast<std::uint32_t>(found - places_.begin());
  if (workload->bytes > kBigWorkloadBytes) return 0;
  const auto oldest = std::min_element(last_used_.begin() + 1, last_used_.end());
  return static_cast<std::uint32_t>(oldest - last_used_.begin());
}

std::expected<void, Failure> ExecutorProcess::Load(
    const Kernel& kernel, const std::shared_ptr<const Workload>& workload) {
  std::vector<std::uint64_t> counts;
  std::uint64_t elements = 0;
  for (const BufferSpec& buffer : kernel.buffers) {
    if (buffer.role == BufferSpec::Role::kInput) continue;
    counts.push_back(buffer.element_count);
    elements += buffer.element_count;  // CheckBuffers bounded the sum
  }
  if (elements > options_.footprint_bytes / sizeof(float)) {
    return std::unexpected(
        Failure{.code = FailureCode::kLimitFootprint,
                .message = fmt::format("outputs and scratch need {} bytes, the limit is {}",
                                       elements * sizeof(float), options_.footprint_bytes)});
  }
  if (const Status started = EnsureChild(); !started) {
    return std::unexpected(
        ToRunFailure({.cause = ChildEnd::Cause::kNoChild, .message = started.error().message},
                     options_.run_limit));
  }
  layout_ = LayOut(counts, workload->layout.buffers.size());
  if (const Status fits = FitArena(layout_.size); !fits) {
    return std::unexpected(Failure{.code = FailureCode::kRunOom, .message = fits.error().message});
  }
  Poison(arena_.bytes().first(layout_.size));

  LoadRequest request{.object = kernel.object,
                      .workload_place = PlaceFor(workload),
                      .inputs = workload->layout.buffers,
                      .others = layout_.buffers,
                      .time_limit_s = WholeSeconds(options_.run_limit)};
  std::vector<int> fds;
  if (places_[request.workload_place] != workload) {
    request.attached.inputs_size = workload->inputs.bytes().size();
    fds.push_back(workload->inputs.fd());
  }
  if (!arena_is_mapped_) {
    request.attached.arena_size = arena_.bytes().size();
    fds.push_back(arena_.fd());
  }
  places_[request.workload_place] = workload;
  last_used_[request.workload_place] = ++load_count_;
  arena_is_mapped_ = true;
  workload_ = workload;

  const Instant start = Now();
  const auto done = Ask<RunDone>(request, fds, options_.run_limit);
  load_took_ = Now() - start;
  if (!done) return std::unexpected(done.error());
  return {};
}

std::expected<void, Failure> ExecutorProcess::RunAgain() {
  LF_CHECK(workload_ != nullptr, "no kernel is loaded");
  Poison(arena_.bytes().first(layout_.size));
  const RunRequest request{.time_limit_s = WholeSeconds(options_.run_limit)};
  const auto done = Ask<RunDone>(request, {}, options_.run_limit);
  if (!done) return std::unexpected(done.error());
  return {};
}

std::expected<Samples, Failure> ExecutorProcess::Time(const SamplingPolicy& policy) {
  LF_CHECK(workload_ != nullptr, "no kernel is loaded");
  // What the policy can need: its budget (in the limit, which is longer than it), one warm-up
  // repetition and the least number of repetitions of a kernel as slow as its first run was, and
  // one in reserve.
  const Nanos limit = std::max<Nanos>(options_.run_limit, Nanos(policy.budget_ns)) +
                      (policy.min_repetitions + 2) * load_took_;
  const Instant start = Now();
  const TimeRequest request{.policy = policy, .time_limit_s = WholeSeconds(limit)};
  std::expected<Samples, Failure> samples = Ask<Samples>(request, {}, limit);
  if (!samples) return samples;
  const auto passed = static_cast<double>((Now() - start).count());
  if (samples->ns.size() > policy.repetitions || TotalNs(*samples) > passed * kClockMargin) {
    return std::unexpected(Replace(ErrorKind::kCorrupt));
  }
  return samples;
}

std::optional<Failure> ExecutorProcess::GuardFailure() const {
  std::size_t end = 0;
  for (std::size_t i = 0; i <= layout_.buffers.size(); ++i) {
    const std::size_t next = i < layout_.buffers.size() ? layout_.buffers[i].offset : layout_.size;
    if (!IsAllPoison(arena_.bytes().subspan(end, next - end))) {
      return Failure{.code = FailureCode::kWrongOutput,
                     .message = "the kernel wrote beside its buffers"};
    }
    if (i < layout_.buffers.size()) end = layout_.buffers[i].end();
  }
  return std::nullopt;
}

std::expected<void, Failure> ExecutorProcess::CheckOutputs() const {
  LF_CHECK(workload_ != nullptr, "no kernel is loaded");
  for (std::size_t i = 0; i < workload_->expected.size(); ++i) {
    const PlacedBuffer& buffer = layout_.buffers[i];
    const std::span<const float> got(
        reinterpret_cast<const float*>(arena_.bytes().data() + buffer.offset),
        buffer.size / sizeof(float));
    if (const auto mismatch = Compare(got, workload_->expected[i])) {
      return std::unexpected(
          Failure{.code = FailureCode::kWrongOutput, .message = Describe(i, *mismatch)});
    }
  }
  if (std::optional<Failure> failure = GuardFailure()) return std::unexpected(*std::move(failure));
  return {};
}

}  // namespace loopfleet::worker
