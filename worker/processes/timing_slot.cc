#include "worker/processes/timing_slot.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::worker {
namespace {

Nanos TookNs(const Timed& timed) {
  return Nanos(static_cast<std::int64_t>(TotalNs(timed.samples)) +
               static_cast<std::int64_t>(timed.outside.total_ns()));
}

}  // namespace

TimingSlot::TimingSlot(const Options& options, SlotLock lock, const Children& children,
                       const Clock& clock)
    : options_(options), lock_(std::move(lock)), children_(children), clock_(clock) {}

bool TimingSlot::HasRoom() {
  if (begun_.empty()) return true;
  const Nanos most = begun_.size() == 1 ? options_.most_before_second : options_.most_queued;
  return begun_.size() < options_.max_in_flight && queued_ < most && !lock_.HasWaiters();
}

bool TimingSlot::TakeCore() {
  if (!locked_) locked_ = lock_.Acquire(options_.lock_timeout, stop_);
  return locked_;
}

void TimingSlot::ReleaseCore() {
  lock_.Release();
  locked_ = false;
}

std::expected<void, Failure> TimingSlot::Begin(const KernelCall& call, const SamplingPolicy& policy,
                                               Nanos run_took) {
  const Instant asked = clock_.Now();
  if (!TakeCore()) {
    return std::unexpected(
        Failure{.code = FailureCode::kUnstableTiming,
                .message = fmt::format("other workers kept the timing core of this host for {} s",
                                       options_.lock_timeout.count())});
  }
  children_.kernels.Begin(call, policy, run_took);
  begun_.push_back({.at = asked,
                    .takes = std::max(static_cast<int>(kLeastAccepted) * run_took,
                                      Nanos(static_cast<std::int64_t>(policy.budget_ns)))});
  queued_ += begun_.back().takes;
  if (begun_.size() == 1) last_finish_ = clock_.Now();  // nothing before it to wait for
  return {};
}

std::expected<Timed, Failure> TimingSlot::Finish(StageDurations& stages) {
  std::expected<Timed, Failure> timed = children_.kernels.Finish();
  const Instant now = clock_.Now();
  const Nanos passed = now - begun_.front().at;
  // The child's own figure, as this result or earlier ones may have been fetched late.
  // (ExecutorProcess bounds it by the time that passed.) A failure has no such figure.
  const Nanos took =
      timed ? std::min(passed, TookNs(*timed)) : now - std::max(begun_.front().at, last_finish_);
  stages[Stage::kQueue] += passed - took;
  stages[Stage::kMeasure] += took;
  last_finish_ = now;
  queued_ -= begun_.front().takes;
  begun_.pop_front();
  if (begun_.empty()) ReleaseCore();
  return timed;
}

std::optional<CanaryReading> TimingSlot::RunCanaries(const HardwareFacts& hardware,
                                                     std::uint64_t probe_steps) {
  LF_CHECK(locked_ && is_empty(), "{} kernels still in flight", begun_.size());
  children_.kernels.ReleaseBigMemory();
  std::optional<CanaryReading> reading = children_.canaries.RunCanaries(hardware, probe_steps);
  ReleaseCore();
  return reading;
}

std::expected<DeviceReading, Failure> TimingSlot::MeasureDevice(
    const HardwareFacts& hardware, std::vector<std::uint64_t> load_blocks) {
  LF_CHECK(locked_ && is_empty(), "{} kernels still in flight", begun_.size());
  children_.kernels.ReleaseBigMemory();
  auto reading = children_.canaries.MeasureDevice(hardware, std::move(load_blocks));
  ReleaseCore();
  return reading;
}

void TimingSlot::Profile(const std::function<void(ExecutorProcess& profiler)>& use) {
  LF_CHECK(locked_ && is_empty(), "{} kernels still in flight", begun_.size());
  children_.kernels.ReleaseBigMemory();
  use(children_.profiler);
  ReleaseCore();
}

std::expected<void, Failure> TimingSlot::Check(const KernelCall& call,
                                               StageDurations& stages) const {
  const Instant start = clock_.Now();
  std::expected<void, Failure> verified = call.arena->Check(call.workload->expected);
  stages[Stage::kVerify] += clock_.Now() - start;
  if (verified) return verified;
  Failure failure = std::move(verified).error();
  failure.message += call.workload->seed.numbers == InputNumbers::kFractions
                         ? " on fractions, after having been right on whole numbers"
                         : ", after having been right before it was timed";
  return std::unexpected(std::move(failure));
}

Result<DeviceReading> MeasureDeviceAlone(ExecutorProcess& executor, SlotLock& lock,
                                         const HardwareFacts& hardware, const CoreWait& patience) {
  constexpr Nanos kTurn = std::chrono::seconds(1);  // between checks whether to end
  const std::atomic<bool> never{false};
  Nanos left = patience.patience;
  while (!lock.Acquire(std::min(left, kTurn), never)) {
    if (patience.should_stop())
      return Fail(ErrorKind::kClosed, "stopped while waiting for the timing core");
    left -= std::min(left, kTurn);
    if (left > Nanos{0}) continue;
    return Fail(
        ErrorKind::kUnavailable,
        fmt::format("the timing core could not be measured: other workers of this host kept "
                    "its lock, {}, for {} s",
                    lock.path(),
                    std::chrono::duration_cast<std::chrono::seconds>(patience.patience).count()));
  }
  auto reading = executor.MeasureDevice(hardware);
  lock.Release();
  if (reading) return *std::move(reading);
  return Fail(ErrorKind::kSystem,
              "the timing core could not be measured: " + reading.error().message);
}

}  // namespace loopfleet::worker
