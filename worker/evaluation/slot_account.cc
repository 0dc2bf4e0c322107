#include "worker/evaluation/slot_account.h"

#include <cstddef>
#include <optional>

namespace loopfleet::worker {

SlotAccount::SlotAccount(const LeaseBook& leases, monitoring::WorkerMetrics& metrics,
                         const Clock& clock)
    : leases_(leases), metrics_(metrics), duty_(clock, [this](Activity activity, Nanos spent) {
        metrics_.SlotSpent(ActivityName(activity), spent);
      }) {}

void SlotAccount::ShowHeld() {
  std::lock_guard lock(show_held_);  // else an older count could be published last
  const std::size_t unfinished = leases_.CountUnfinished();
  duty_.SetHeld(unfinished);
  metrics_.SetHeld(unfinished);
}

void SlotAccount::ShowWorth(const Evaluation& evaluation) {
  // A bounded job exists to learn that a kernel exceeds the bound, so kCut is a useful result.
  const bool worth = evaluation.ok() || evaluation.failure().code == FailureCode::kCut;
  duty_.KernelWasJudged(worth ? DutyCycle::Worth::kFigure : DutyCycle::Worth::kNothing);
  if (!evaluation.is_timed()) return;
  const Measurement& measurement = evaluation.measurement();
  metrics_.Measured(EnumName(measurement.grade), measurement.spread);
  if (measurement.grade != Grade::kA) return;
  const std::optional<double> disagreement =
      repeats_.Observe({.code_hash = evaluation.code_hash,
                        .threads = evaluation.conditions->threads,
                        .cache = evaluation.conditions->cache},
                       measurement.elapsed_ns);
  if (disagreement) metrics_.Repeated(*disagreement);
}

}  // namespace loopfleet::worker
