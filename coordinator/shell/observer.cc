#include "coordinator/shell/observer.h"

#include <optional>
#include <string_view>

#include "common/base/log.h"

namespace loopfleet::coordinator {
namespace {

struct ObservationVisitor {
  monitoring::CoordinatorMetrics& metrics;
  FleetStatus& status;
  const Clock& clock;
  LogRateLimit& implausible_log;
  LogRateLimit& unreadable_log;

  void operator()(const JobsWereAccepted& accepted) const {
    metrics.JobsSubmitted(accepted.count);
    status.Accepted(accepted);
  }

  void operator()(const BatchWasFinished& finished) const { status.BatchFinished(finished); }

  void operator()(const JobsWereFinished& finished) const {
    for (const FinishedJob& job : finished.jobs) Count(job);
  }

  void Count(const FinishedJob& finished) const {
    status.Finished(finished);
    metrics.JobCompleted(finished.failure ? loopfleet::InfoOf(*finished.failure).name : "ok");
    // A failure that no worker reported has no source.
    const bool nobody_had_it = finished.failure && finished.source == OutcomeSource::kMeasured &&
                               finished.stages[Stage::kReplay] == Nanos{0};
    if (!nobody_had_it) metrics.OutcomeFrom(OutcomeSourceName(finished.source));
    for (const Stage stage : kStages) {
      // The stages of a shared answer belong to the job it was measured for.
      const bool own = finished.source == OutcomeSource::kMeasured || stage == Stage::kQueue;
      if (own && finished.stages[stage] > Nanos{0}) {
        metrics.StageTook(StageName(stage), finished.stages[stage]);
      }
    }
  }

  void operator()(const OutcomesWereStored& stored) const {
    for (std::uint32_t i = 0; i < stored.count; ++i) {
      metrics.StageTook(StageName(Stage::kStore), stored.took);
    }
  }

  void operator()(const RequestWasRefused& refused) const {
    metrics.Refused(loopfleet::InfoOf(refused.code).name);
  }

  void operator()(const WorkerChanged& changed) const {
    status.Changed(changed);
    if (!changed.quarantine) {
      log::Info("worker.{} worker={} leases={}", NameOf(changed.change), changed.name,
                changed.leases);
      return;
    }
    metrics.Quarantined(QuarantineCauseName(changed.quarantine.cause));
    log::Warning("worker.{} worker={} leases={} cause={} reason={}", NameOf(changed.change),
                 changed.name, changed.leases, QuarantineCauseName(changed.quarantine.cause),
                 QuarantineText(changed.quarantine));
  }

  void operator()(const ReportWasImplausible& report) const {
    status.Implausible(report);
    if (const auto count = implausible_log.Count(clock.Now())) {
      log::Warning("report.implausible worker={} job={} reason={} count={}", report.worker,
                   report.job, report.reason, *count);
    }
  }

  void operator()(const LeaseWasUnreadable& lease) const {
    if (const auto count = unreadable_log.Count(clock.Now())) {
      log::Warning("lease.unreadable worker={} job={} reason={} count={}", lease.worker, lease.job,
                   lease.reason, *count);
    }
  }

  void operator()(const WorkersDisagreed& disagreed) const {
    metrics.WorkersDisagreed();
    status.Disagreed(disagreed);
    log::Warning("workers.disagree job={} failed_on={} code={} measured_on={}", disagreed.job,
                 disagreed.failed, loopfleet::InfoOf(disagreed.code).name, disagreed.measured);
  }

  void operator()(const JobWasRetried& retried) const {
    metrics.JobRetried(loopfleet::InfoOf(retried.code).name);
  }
};

}  // namespace

monitoring::CoordinatorLabels AllLabels() {
  monitoring::CoordinatorLabels labels{.outcomes = {"ok"}, .devices = {"cpu", "cuda", "any"}};
  for (const FailureInfo& info : FailureTable()) {
    labels.outcomes.emplace_back(info.name);
    labels.refusals.emplace_back(info.name);
    if (info.policy.retry.verdicts > 1) labels.retries.emplace_back(info.name);
  }
  for (const auto source :
       {OutcomeSource::kMeasured, OutcomeSource::kStored, OutcomeSource::kCoalesced}) {
    labels.sources.emplace_back(OutcomeSourceName(source));
  }
  for (std::size_t cause = 1; cause < kQuarantineCauses; ++cause) {
    labels.quarantines.emplace_back(QuarantineCauseName(static_cast<QuarantineCause>(cause)));
  }
  for (const Stage stage : kStages) labels.stages.emplace_back(StageName(stage));
  for (const std::string_view name : kEventNames) labels.events.emplace_back(name);
  for (const std::string_view name : {kAdmissionSlice, kPageRead}) labels.events.emplace_back(name);
  return labels;
}

void Observer::Observe(const Observation& observation) {
  std::visit(ObservationVisitor{metrics_, status_, clock_, implausible_log_, unreadable_log_},
             observation);
  tally_.Count(observation);
}

void Observer::ShowOldestQueued(const Core& core, Moment now) {
  const std::optional<Instant> oldest = core.state().queued_since.Oldest();
  std::optional<Nanos> accepted_at;
  if (oldest) accepted_at = now.wall.time_since_epoch() - (now.instant - *oldest);
  metrics_.SetOldestQueued(accepted_at);
  status_.SetOldestQueued(accepted_at);
}

void Observer::ShowFleet(const Core& core, Moment now) {
  ShowOldestQueued(core, now);
  metrics_.SetQueued("cpu", core.Queued(Placement::kCpu));
  metrics_.SetQueued("cuda", core.Queued(Placement::kCuda));
  metrics_.SetQueued("any", core.Queued(Placement::kAny));
  metrics_.SetLeased(core.Leased());
  using monitoring::WorkerState;
  metrics_.SetWorkers(WorkerState::kReady, core.Workers(wire::WorkerState::kReady));
  metrics_.SetWorkers(WorkerState::kDraining, core.Workers(wire::WorkerState::kDraining));
  metrics_.SetWorkers(WorkerState::kLost, core.Workers(wire::WorkerState::kLost));
  metrics_.SetWorkers(WorkerState::kQuarantined, core.Workers(wire::WorkerState::kQuarantined));
}

}  // namespace loopfleet::coordinator
