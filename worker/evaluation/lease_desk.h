#pragma once
// LeaseDesk: the leases of a pipeline, from acceptance to report, with the metrics and log lines of
// each. Shared by a pipeline and its target. Safe from any thread, except where SlotAccount says
// otherwise.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/job/outcome.h"
#include "monitoring/metrics.h"
#include "worker/coordinator_link/lease_book.h"
#include "worker/evaluation/preparations.h"
#include "worker/evaluation/slot_account.h"
#include "worker/timing/samples.h"

namespace loopfleet::worker {

class LeaseDesk {
 public:
  // `metrics` and `clock` outlive this. `on_output` is called, on any thread, whenever there is
  // something to collect.
  LeaseDesk(std::size_t max_held, monitoring::WorkerMetrics& metrics, const Clock& clock,
            std::function<void()> on_output);

  // As in LeaseRunner.
  bool Accept(wire::Lease lease);
  void Drop(std::span<const LeaseId> leases);
  std::vector<LeaseId> DropUnstarted();
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases);
  std::vector<wire::Report> TakeFinished() { return leases_.TakeFinished(); }
  std::vector<wire::HeldLease> Held() const { return leases_.Held(); }

  // As in LeaseBook.
  std::optional<LeaseBook::Waiting> Next() { return leases_.Next(); }
  std::size_t CountUnfinished() const { return leases_.CountUnfinished(); }
  bool IsHeld(LeaseId lease) const { return leases_.IsHeld(lease); }
  bool Start(LeaseId lease) { return leases_.Start(lease); }
  void Stop() { leases_.Stop(); }

  // Records the samples of one round in the metrics.
  void CountSamples(const Samples& samples);
  // The end of a job, whose evaluation is complete.
  void Finish(LeaseId lease, JobId job, Evaluation evaluation);
  void TellOutput() const { on_output_(); }

  SlotAccount& account() { return account_; }
  DutyCycle& duty() { return account_.duty(); }
  Preparations& preparations() { return preparations_; }

 private:
  monitoring::WorkerMetrics& metrics_;
  const Clock& clock_;
  const std::function<void()> on_output_;
  LeaseBook leases_;
  SlotAccount account_;
  Preparations preparations_;
};

}  // namespace loopfleet::worker
