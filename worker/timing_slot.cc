#include "worker/timing_slot.h"

#include <fmt/format.h>

#include <utility>

#include "worker/timing/statistics.h"

namespace loopfleet::worker {
namespace {

// Adds the time since its making, or since the last Lap, to a stage.
class LapTimer {
 public:
  LapTimer(const Clock& clock, StageDurations& stages)
      : clock_(clock), stages_(stages), start_(clock.Now()) {}
  void Lap(Stage stage) {
    const Instant now = clock_.Now();
    stages_[stage] += now - start_;
    start_ = now;
  }

 private:
  const Clock& clock_;
  StageDurations& stages_;
  Instant start_;
};

}  // namespace

TimingSlot::TimingSlot(const Options& options, SlotLock lock, ExecutorProcess& executor,
                       const Clock& clock)
    : options_(options), lock_(std::move(lock)), executor_(executor), clock_(clock) {}

std::expected<Measurement, Failure> TimingSlot::Evaluate(
    const Kernel& kernel, const std::shared_ptr<const Workload>& workload, StageDurations& stages) {
  LapTimer timer(clock_, stages);
  const bool locked = lock_.Acquire(options_.lock_timeout, stop_);
  timer.Lap(Stage::kQueue);
  if (!locked) {
    return std::unexpected(
        Failure{.code = FailureCode::kUnstableTiming,
                .message = fmt::format("other workers kept the timing core of this host for {} s",
                                       options_.lock_timeout.count())});
  }
  auto measurement = EvaluateLocked(kernel, workload, stages);
  lock_.Release();
  return measurement;
}

std::expected<Measurement, Failure> TimingSlot::EvaluateLocked(
    const Kernel& kernel, const std::shared_ptr<const Workload>& workload, StageDurations& stages) {
  LapTimer timer(clock_, stages);
  std::expected<void, Failure> verified = executor_.Load(kernel, workload);
  if (verified) verified = executor_.CheckOutputs();
  timer.Lap(Stage::kVerify);
  if (!verified) return std::unexpected(std::move(verified).error());

  const std::expected<Samples, Failure> samples = executor_.Time(options_.policy);
  timer.Lap(Stage::kMeasure);
  if (!samples) return std::unexpected(samples.error());

  verified = executor_.RunAgain();
  if (verified) verified = executor_.CheckOutputs();
  timer.Lap(Stage::kVerify);
  if (!verified) {
    Failure failure = std::move(verified).error();
    failure.message += ", after having been right before it was timed";
    return std::unexpected(std::move(failure));
  }
  return Summarise(*samples);
}

}  // namespace loopfleet::worker
