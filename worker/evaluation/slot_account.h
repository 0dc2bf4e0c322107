#pragma once
// SlotAccount: what a pipeline of any kind tells the metrics of its slot: what its time goes on,
// how many jobs are here, how good figures are and whether they repeat. duty().KernelCameOff and
// ShowWorth belong to the timing thread; the rest is safe from any.

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
  // All of it outlives this. `metrics` has the activities and grades among its labels.
  SlotAccount(const LeaseBook& leases, monitoring::WorkerMetrics& metrics, const Clock& clock);

  DutyCycle& duty() { return duty_; }
  // To be called whenever leases came, went or were finished.
  void ShowHeld();
  // What came of the kernel that came off the slot last.
  void ShowWorth(const Evaluation& evaluation);

 private:
  const LeaseBook& leases_;
  monitoring::WorkerMetrics& metrics_;
  DutyCycle duty_;
  RepeatWatch repeats_;  // the timing thread's
  std::mutex show_held_;
};

}  // namespace loopfleet::worker
