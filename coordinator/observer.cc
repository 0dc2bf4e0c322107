#include "coordinator/observer.h"

#include <string_view>

#include "common/base/check.h"
#include "common/base/log.h"
#include "coordinator/retry_rules.h"

namespace loopfleet::coordinator {
namespace {

std::string_view NameOf(WorkerChange change) {
  switch (change) {
    case WorkerChange::kJoined: return "joined";
    case WorkerChange::kReattached: return "reattached";
    case WorkerChange::kLeft: return "left";
    case WorkerChange::kLost: return "lost";
    case WorkerChange::kRefused: return "refused";
    case WorkerChange::kQuarantined: return "quarantined";
    case WorkerChange::kReleased: return "released";
    case WorkerChange::kDrained: return "drained";
    case WorkerChange::kResumed: return "resumed";
  }
  LF_CHECK(false, "worker change {}", static_cast<int>(change));
}

struct ObservationVisitor {
  monitoring::CoordinatorMetrics& metrics;

  void operator()(const JobsWereAccepted& accepted) const { metrics.JobsSubmitted(accepted.count); }

  void operator()(const JobWasFinished& finished) const {
    metrics.JobCompleted(finished.failure ? loopfleet::InfoOf(*finished.failure).name : "ok");
    // A failure that no worker reported came from nowhere.
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
    if (changed.change == WorkerChange::kQuarantined) metrics.Quarantined();
    log::Info("worker.{} worker={} leases={}", NameOf(changed.change), changed.name,
              changed.leases);
  }

  void operator()(const ReportWasImplausible& report) const {
    log::Warning("report.implausible worker={} job={} reason={}", report.worker, report.job,
                 report.reason);
  }

  void operator()(const WorkersDisagreed& disagreed) const {
    metrics.WorkersDisagreed();
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
  }
  for (const RetryRule& rule : RetryRules()) {
    labels.retries.emplace_back(loopfleet::InfoOf(rule.code).name);
  }
  for (const auto source :
       {OutcomeSource::kMeasured, OutcomeSource::kStored, OutcomeSource::kCoalesced}) {
    labels.sources.emplace_back(OutcomeSourceName(source));
  }
  for (const Stage stage : kStages) labels.stages.emplace_back(StageName(stage));
  return labels;
}

void Observer::Observe(const Observation& observation) {
  std::visit(ObservationVisitor{metrics_}, observation);
}

void Observer::ShowFleet(const Core& core) {
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
