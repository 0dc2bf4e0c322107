#include "worker/processes/executor_process.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/check.h"
#include "worker/timing/device_meter.h"

namespace loopfleet::worker {
namespace {

// Mappings above this size share place 0 of their kind, so that the child never keeps several big
// ones.
constexpr std::size_t kBigBytes = std::size_t{16} << 20;
// The total of a child's samples may exceed the time that passed here by this factor: only enough
// for the rounding of the samples.
constexpr double kClockMargin = 1.001;
// Limit for the worker's own kernels, the device measurement (a second) and the canaries, even on
// the busiest host.
constexpr std::chrono::seconds kOwnLimit{60};

Instant Now() { return std::chrono::steady_clock::now(); }

std::uint64_t WholeSeconds(Nanos duration) {
  return static_cast<std::uint64_t>(
             std::chrono::duration_cast<std::chrono::seconds>(duration).count()) +
         1;
}

template <class Place>
std::uint32_t PlaceIn(std::span<const Place> places, std::uint64_t memory, std::size_t size) {
  const auto found = std::ranges::find(places, memory, &Place::memory);
  if (found != places.end()) return static_cast<std::uint32_t>(found - places.begin());
  if (size > kBigBytes || places.size() == 1) return 0;
  const auto oldest =
      std::min_element(places.begin() + 1, places.end(),
                       [](const auto& a, const auto& b) { return a.last_used < b.last_used; });
  return static_cast<std::uint32_t>(oldest - places.begin());
}

}  // namespace

ExecutorProcess::ExecutorProcess(ForkServer& fork_server, const Options& options,
                                 RestartListener on_restart)
    : fork_server_(fork_server), options_(options), on_restart_(std::move(on_restart)) {}

Status ExecutorProcess::EnsureChild() {
  if (child_) return {};
  LF_TRY(child_, fork_server_.Spawn(options_.role));
  sent_ = 0;
  answered_.clear();
  inputs_places_ = {};
  arena_places_ = {};
  return {};
}

Failure ExecutorProcess::NoChild(const Error& error) const {
  return ToRunFailure({.cause = ExitReason::Cause::kNoChild, .message = error.message},
                      options_.run_limit);
}

Failure ExecutorProcess::Replaced(const ExitReason& end) {
  child_.reset();
  on_restart_(options_.role, end.cause);
  return ToRunFailure(end, options_.run_limit);
}

void ExecutorProcess::Renew() { child_.reset(); }

std::uint64_t ExecutorProcess::NewRequest() {
  ++sent_;
  return options_.new_number();
}

Status ExecutorProcess::Send(const ExecutorRequest& request, std::span<const int> fds) {
  return child_->channel().Send(Encode(request), Now() + options_.run_limit, fds);
}

Result<CallSlots> ExecutorProcess::Attach(const KernelCall& call) {
  const auto map = [&](MapRequest::Kind kind, std::span<Place> places, std::uint64_t id,
                       const SharedMemory& memory,
                       const BufferLayout& layout) -> Result<std::uint32_t> {
    const std::uint32_t number = PlaceIn<Place>(places, id, memory.bytes().size());
    Place& place = places[number];
    if (place.memory != id) {
      place.memory = id;
      place.size = memory.bytes().size();
      const int fd = memory.fd();
      LF_TRY_VOID(Send(MapRequest{.kind = kind,
                                  .place = number,
                                  .size = memory.bytes().size(),
                                  .buffers = layout.buffers},
                       {&fd, 1}));
    }
    place.last_used = ++call_count_;
    return number;
  };
  CallSlots places{.entry = call.entry, .arena_buffers = call.arena_buffers};
  LF_TRY(places.inputs, map(MapRequest::Kind::kInputs, inputs_places_, call.workload->inputs.id(),
                            call.workload->inputs, call.workload->layout));
  LF_TRY(places.arena,
         map(MapRequest::Kind::kArena, std::span(arena_places_).first(options_.arena_places),
             call.arena->id(), call.arena->memory(), call.arena->layout()));
  return places;
}

void ExecutorProcess::ReleaseBigMemory() {
  if (!child_) return;
  const auto empty = [&](MapRequest::Kind kind, Place& place) {
    if (place.memory == 0 || place.size <= kBigBytes) return;
    place = {};
    // If the child is gone, the next request notices it.
    static_cast<void>(Send(MapRequest{.kind = kind}, {}));
  };
  empty(MapRequest::Kind::kInputs, inputs_places_.front());  // see PlaceIn
  empty(MapRequest::Kind::kArena, arena_places_.front());
}

std::expected<ExecutorReply, Failure> ExecutorProcess::Receive(Instant deadline) {
  const Result<std::string> bytes = child_->channel().Receive(deadline, kMaxExecutorReplyBytes);
  if (!bytes) return std::unexpected(Replaced(EndChild(*child_, bytes.error().kind)));
  std::optional<ExecutorReply> reply = DecodeExecutorReply(*bytes);
  if (!reply) return std::unexpected(Replaced(EndChild(*child_, ErrorKind::kCorrupt)));
  if (const auto* call = std::get_if<ForbiddenCall>(&*reply)) {
    return std::unexpected(Replaced(EndChild(*child_, *call)));
  }
  if (const auto* crashed = std::get_if<Crashed>(&*reply)) {
    return std::unexpected(Replaced(EndChild(*child_, *crashed)));
  }
  return *std::move(reply);
}

template <class Reply>
std::expected<std::optional<Reply>, Failure> ExecutorProcess::Await(std::uint64_t number,
                                                                    Instant deadline) {
  LF_TRY(ExecutorReply reply, Receive(deadline));
  auto* const answer = std::get_if<Reply>(&reply);
  if (answer != nullptr && answer->number == number) {
    // Requests to the canaries' child have no end.
    if (answered_.size() >= options_.max_requests) answered_.erase(answered_.begin());
    answered_.push_back(number);
    return std::move(*answer);
  }
  const bool is_old =
      answer != nullptr && std::ranges::find(answered_, answer->number) != answered_.end();
  Failure failure = Replaced(EndChild(*child_, ErrorKind::kCorrupt));
  // An earlier kernel forged a reply, and then the child sent its own.
  if (is_old) return std::nullopt;
  return std::unexpected(std::move(failure));
}

std::expected<ExecutorProcess::Ran, Failure> ExecutorProcess::Run(const KernelCall& call,
                                                                  std::optional<Nanos> most_time) {
  LF_CHECK(begun_.empty(), "{} kernels are being timed", begun_.size());
  if (IsWornOut()) Renew();
  for (;;) {  // twice at most: a new child has no old answers
    LF_TRY(const std::optional<Ran> ran, TryRun(call, 0, most_time));
    if (ran) return *ran;
  }
}

std::optional<double> ExecutorProcess::FindRunNs(const KernelCall& call) {
  LF_CHECK(begun_.empty(), "{} kernels are being timed", begun_.size());
  constexpr std::uint64_t kBatchNs = 10'000;  // reading the clock costs 0.3 % of that
  const auto ran = TryRun(call, kBatchNs);
  if (!ran || !*ran) return std::nullopt;
  return (*ran)->run_ns;
}

std::expected<std::optional<ExecutorProcess::Ran>, Failure> ExecutorProcess::TryRun(
    const KernelCall& call, std::uint64_t batch_ns, std::optional<Nanos> most_time) {
  const Instant start = Now();
  LF_TRY(const Sent sent, SendCall(call, RunRequest{.batch_ns = batch_ns}));
  if (most_time && !AwaitReplyUntil(sent.child_had + *most_time, sent.deadline)) {
    static_cast<void>(EndChild(*child_, ErrorKind::kTimeout));
    Renew();
    return Ran{.passed = Now() - start, .was_stopped = true};
  }
  LF_TRY(const std::optional<RunDone> done, Await<RunDone>(sent.number, sent.deadline));
  if (!done) return std::nullopt;
  const Ran ran{.passed = Now() - start, .run_ns = done->run_ns};
  ReleaseBigMemory();  // the child may idle from now on
  return ran;
}

bool ExecutorProcess::AwaitReplyUntil(Nanos end, Instant deadline) {
  constexpr Nanos kLook = std::chrono::milliseconds(2);
  while (!child_->channel().AwaitReadable(std::min(deadline, Now() + kLook))) {
    if (child_->processor_time() >= end) return false;
    if (Now() >= deadline) return true;
  }
  return true;
}

template <class Request>
std::expected<ExecutorProcess::Sent, Failure> ExecutorProcess::SendCall(const KernelCall& call,
                                                                        Request request) {
  if (const Status started = EnsureChild(); !started) {
    return std::unexpected(NoChild(started.error()));
  }
  ran_in_new_child_ = sent_ == 0;
  const Sent sent{.number = NewRequest(),
                  .deadline = Now() + options_.run_limit,
                  .child_had = child_->processor_time()};
  const Result<CallSlots> places = Attach(call);
  if (!places) return std::unexpected(Replaced(EndChild(*child_, places.error().kind)));
  request.number = sent.number;
  request.call = *places;
  request.time_limit_s = WholeSeconds(options_.run_limit);
  if (const Status status = Send(request, {}); !status) {
    return std::unexpected(Replaced(EndChild(*child_, status.error().kind)));
  }
  return sent;
}

template <class Reply, class Request>
std::expected<std::optional<Reply>, Failure> ExecutorProcess::TryCall(const KernelCall& call,
                                                                      Request request) {
  LF_TRY(const Sent sent, SendCall(call, std::move(request)));
  return Await<Reply>(sent.number, sent.deadline);
}

std::expected<double, Failure> ExecutorProcess::Repeat(const KernelCall& call, Nanos batch) {
  LF_CHECK(begun_.empty(), "{} kernels are being timed", begun_.size());
  if (IsWornOut()) Renew();
  for (;;) {  // twice at most: a new child has no old answers
    LF_TRY(const std::optional<Ran> ran, TryRun(call, static_cast<std::uint64_t>(batch.count())));
    if (ran) return ran->run_ns;
  }
}

std::expected<CodeSamples, Failure> ExecutorProcess::Sample(const KernelCall& call,
                                                            const CodeSampler::Plan& plan) {
  LF_CHECK(begun_.empty(), "{} kernels are being timed", begun_.size());
  if (IsWornOut()) Renew();
  for (;;) {  // twice at most: a new child has no old answers
    LF_TRY(std::optional<Sampled> sampled, TryCall<Sampled>(call, SampleRequest{.plan = plan}));
    if (sampled) return std::move(sampled->samples);
  }
}

template <class Reply, class Request>
std::expected<Reply, Failure> ExecutorProcess::RequestWhenIdle(Request request) {
  LF_CHECK(begun_.empty(), "{} kernels are being timed", begun_.size());
  for (;;) {  // twice at most: a new child has no old answers
    if (const Status started = EnsureChild(); !started) {
      return std::unexpected(NoChild(started.error()));
    }
    request.number = NewRequest();
    request.time_limit_s = WholeSeconds(kOwnLimit);
    const Instant start = Now();
    if (const Status sent = Send(request, {}); !sent) {
      return std::unexpected(Replaced(EndChild(*child_, sent.error().kind)));
    }
    LF_TRY(std::optional<Reply> reply, Await<Reply>(request.number, start + kOwnLimit));
    if (reply) return *std::move(reply);
  }
}

std::expected<DeviceReading, Failure> ExecutorProcess::MeasureDevice(
    const HardwareFacts& hardware, std::vector<std::uint64_t> load_blocks) {
  const std::size_t blocks = load_blocks.size();
  LF_TRY(DeviceReply reply,
         RequestWhenIdle<DeviceReply>(MeterRequest{.stream_bytes = StreamBytes(hardware),
                                                   .load_blocks = std::move(load_blocks)}));
  reply.reading.load_ns.resize(blocks);
  return std::move(reply.reading);
}

std::optional<CanaryReading> ExecutorProcess::RunCanaries(const HardwareFacts& hardware,
                                                          std::uint64_t probe_steps) {
  const auto reply = RequestWhenIdle<CanaryReply>(
      CanaryRequest{.probe_steps = probe_steps, .second_cache_bytes = hardware.l2_bytes});
  return reply ? reply->reading : std::nullopt;
}

Status ExecutorProcess::SendTime(Asked& asked) {
  LF_TRY_VOID(EnsureChild());
  asked.is_sent = true;
  asked.may_be_anothers_fault = sent_ > 0;
  asked.number = NewRequest();
  LF_TRY(const CallSlots places, Attach(asked.call));
  return Send(TimeRequest{.number = asked.number,
                          .call = places,
                          .policy = asked.policy,
                          .time_limit_s = WholeSeconds(asked.limit)},
              {});
}

void ExecutorProcess::Begin(const KernelCall& call, const SamplingPolicy& policy, Nanos run_took) {
  // The longest that the policy can take, plus the limit of a run in reserve. Evicting the caches
  // takes an unknown time, far below that limit.
  const Nanos limit = options_.run_limit + run_took +
                      Nanos(static_cast<std::int64_t>(
                          LongestNs(policy, static_cast<std::uint64_t>(run_took.count()))));
  begun_.push_back({.call = call, .policy = policy, .limit = limit, .may_run_since = Now()});
  if (IsWornOut()) {
    if (begun_.size() > 1) return;  // sent to the next child, once this one has answered
    Renew();
  }
  // If the child is gone, the Finish of an earlier kernel or of this one notices it.
  static_cast<void>(SendTime(begun_.back()));
}

std::expected<Timed, Failure> ExecutorProcess::Finish() {
  LF_CHECK(!begun_.empty(), "nothing was begun");
  const bool may_be_of_another = child_ && begun_.front().may_be_anothers_fault;
  std::expected<std::optional<Timed>, Failure> timed = TryFinish();
  // An earlier kernel in that child may have forged a plausible reply and kept running. Then this
  // one never started.
  const bool is_in_doubt = !timed && may_be_of_another;
  if (is_in_doubt || (timed && !*timed)) {  // at most one more try: a new child has no old answers
    ResendPending();
    timed = TryFinish();
    LF_CHECK(!timed || *timed, "a new child answered an old request");
  }
  begun_.pop_front();
  if (!begun_.empty() && !begun_.front().is_sent) Renew();
  if (!child_) ResendPending();  // the requests behind it were lost with the child
  if (!timed) return std::unexpected(std::move(timed).error());
  return **std::move(timed);
}

void ExecutorProcess::ResendPending() {
  for (Asked& asked : begun_) {
    asked.may_run_since = Now();
    asked.is_sent = false;
  }
  for (Asked& asked : begun_) {
    if (IsWornOut()) return;
    if (!SendTime(asked)) return;
  }
}

std::expected<std::optional<Timed>, Failure> ExecutorProcess::TryFinish() {
  const Asked& asked = begun_.front();
  if (!child_) return std::unexpected(NoChild({.message = "none could be started"}));
  // Its limit counts from now, as the kernel before it has ended.
  const Instant deadline = Now() + asked.limit;
  // While the child has another kernel to time, it does not wait for the daemon and should spend no
  // time on waking it. Two rounds take longer than a nap, so a child with more kernels queued does
  // not run out of them.
  constexpr Nanos kNap = std::chrono::microseconds(250);
  if (begun_.size() > 1) child_->channel().PollUntilReadable(kNap, deadline);
  LF_TRY(std::optional<Timed> timed, Await<Timed>(asked.number, deadline));
  if (!timed) return timed;
  const double claimed = TotalNs(timed->samples);
  const auto passed = static_cast<double>((Now() - asked.may_run_since).count());
  if (timed->samples.ns.size() > asked.policy.max_samples || claimed > passed * kClockMargin) {
    return std::unexpected(Replaced(EndChild(*child_, ErrorKind::kCorrupt)));
  }
  timed->outside.LimitTo(static_cast<std::uint64_t>(passed));
  if (begun_.size() > 1) {
    begun_[1].may_run_since = std::max(
        begun_[1].may_run_since, asked.may_run_since + Nanos(static_cast<std::int64_t>(claimed)));
  }
  return timed;
}

}  // namespace loopfleet::worker
