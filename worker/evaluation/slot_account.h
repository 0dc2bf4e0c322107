#pragma once
// SlotAccount: feeds the slot metrics for any kind of pipeline: how its time is spent, how many
// jobs are held, how good the figures are and whether they repeat. duty().KernelCameOff and
// ShowWorth belong to the timing thread; the rest is safe from any thread.

#include <mutex>

#include "common/base/clock.h"
#include "common/job/outcome.h"
#include "monitoring/metrics.h"
#include "worker/coordinator_link/lease_book.h"
#include "worker/evaluation/duty_cycle.h"
#include "worker/evaluation/repeat_watch.h"

namespace loopfleet::worker {

class SlotAccount {
 public:
  // All of it outlives this. The labels of `metrics` include the activities and grades.
  SlotAccount(const LeaseBook& leases, monitoring::WorkerMetrics& metrics, const Clock& clock);

  DutyCycle& duty() { return duty_; }
  // Call whenever leases are accepted, dropped or finished.
  void ShowHeld();
  // Records the result of the last kernel to leave the slot.
  void ShowWorth(const Evaluation& evaluation);

 private:
  const LeaseBook& leases_;
  monitoring::WorkerMetrics& metrics_;
  DutyCycle duty_;
  RepeatWatch repeats_;  // the timing thread's
  std::mutex show_held_;
};

}  // namespace loopfleet::worker
