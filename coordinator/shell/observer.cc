#include "coordinator/shell/observer.h"

#include <algorithm>
#include <string_view>

#include "common/base/enum_names.h"
#include "common/base/log.h"
#include "common/fleet/attention.h"
#include "common/fleet/fleet_json.h"

namespace loopfleet::coordinator {
namespace {

// A fleet that comes back at once is logged worker by worker.
constexpr int kChangesAtOnce = 100;

struct ObservationVisitor {
  monitoring::CoordinatorMetrics& metrics;
  FleetStatus& status;
  const Clock& clock;
  std::map<WorkerChange, LogRateLimit>& change_logs;
  LogRateLimit& implausible_log;
  LogRateLimit& unreadable_log;

  void operator()(const JobsWereAccepted& accepted) const {
    metrics.JobsSubmitted(accepted.count);
    status.Accepted(accepted);
  }

  void operator()(const BatchWasFinished& finished) const { status.BatchFinished(finished); }

  // Most jobs of an event end alike: neighbours are counted together.
  void operator()(const JobsWereFinished& finished) const {
    const auto is_other = [](const FinishedJob& a, const FinishedJob& b) {
      return a.failure != b.failure || a.source != b.source || HasNoSource(a) != HasNoSource(b);
    };
    for (auto run = finished.jobs.begin(); run != finished.jobs.end();) {
      const FinishedJob& first = *run;
      const auto end = std::find_if(run, finished.jobs.end(),
                                    [&](const FinishedJob& job) { return is_other(first, job); });
      const auto count = static_cast<std::uint64_t>(end - run);
      metrics.JobCompleted(first.failure ? loopfleet::InfoOf(*first.failure).name : "ok", count);
      if (!HasNoSource(first)) metrics.OutcomeFrom(EnumName(first.source), count);
      for (; run != end; ++run) Count(*run);
    }
  }

  // A failure that no worker reported has no source.
  static bool HasNoSource(const FinishedJob& finished) {
    return finished.failure && finished.source == OutcomeSource::kMeasured &&
           finished.stages[Stage::kReplay] == Nanos{0};
  }

  void Count(const FinishedJob& finished) const {
    status.Finished(finished);
    for (const Stage stage : kStages) {
      // The stages of a shared answer belong to the job it was measured for.
      const bool own = finished.source == OutcomeSource::kMeasured || stage == Stage::kQueue;
      if (own && finished.stages[stage] > Nanos{0}) {
        metrics.StageTook(StageName(stage), finished.stages[stage]);
      }
    }
  }

  void operator()(const OutcomesWereStored& stored) const {
    metrics.StageTook(StageName(Stage::kStore), stored.took, stored.count);
  }

  void operator()(const RequestWasRefused& refused) const {
    metrics.Refused(loopfleet::InfoOf(refused.code).name);
  }

  void operator()(const WorkerChanged& changed) const {
    status.Changed(changed);
    const std::string_view cause = QuarantineCauseName(changed.quarantine.cause);
    if (changed.quarantine) metrics.Quarantined(cause);
    LogRateLimit& change_log =
        change_logs.try_emplace(changed.change, kChangesAtOnce).first->second;
    const auto count = change_log.Count(clock.Now());
    if (!count) return;
    if (!changed.quarantine) {
      log::Info("worker.{} worker={} leases={} count={}", NameOf(changed.change), changed.name,
                changed.leases, *count);
      return;
    }
    log::Warning("worker.{} worker={} leases={} cause={} reason={} count={}",
                 NameOf(changed.change), changed.name, changed.leases, cause,
                 QuarantineText(changed.quarantine), *count);
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
  for (const std::string_view name : AllNames<OutcomeSource>()) labels.sources.emplace_back(name);
  for (std::size_t cause = 1; cause < kQuarantineCauses; ++cause) {
    labels.quarantines.emplace_back(QuarantineCauseName(static_cast<QuarantineCause>(cause)));
  }
  for (const wire::WorkerState state : kWorkerStates) {
    labels.worker_states.emplace_back(WorkerStateName(state));
  }
  for (const AttentionInfo& info : AttentionTable()) labels.attention.emplace_back(info.name);
  for (const Stage stage : kStages) labels.stages.emplace_back(StageName(stage));
  for (const std::string_view name : kEventNames) labels.events.emplace_back(name);
  for (const std::string_view name : {kAdmissionSlice, kPageRead}) labels.events.emplace_back(name);
  return labels;
}

void Observer::Observe(const Observation& observation) {
  std::visit(ObservationVisitor{metrics_, status_, clock_, change_logs_, implausible_log_,
                                unreadable_log_},
             observation);
  tally_.Count(observation);
}

FleetSnapshot Observer::Look(const Core& core, Moment now) {
  status_.AddSteps(tally_, now);
  return SnapshotOf(core, status_, tally_, now);
}

void ShowFleet(const FleetModel& fleet, const wire::FleetHealth& health,
               monitoring::CoordinatorMetrics& metrics) {
  metrics.SetQueued("cpu", fleet.Queued(Placement::kCpu));
  metrics.SetQueued("cuda", fleet.Queued(Placement::kCuda));
  metrics.SetQueued("any", fleet.Queued(Placement::kAny));
  metrics.SetLeased(fleet.leased);
  metrics.SetOldestQueued(fleet.oldest_queued);
  for (const wire::WorkerState state : kWorkerStates) {
    metrics.SetWorkers(WorkerStateName(state), fleet.Workers(state));
  }
  if (fleet.mirror) metrics.SetMirror(fleet.mirror->waiting, fleet.mirror->behind);
  for (const AttentionInfo& info : AttentionTable()) {
    const auto item = std::ranges::find(health.attention, info.name, &wire::Attention::kind);
    metrics.SetAttention(info.name, item == health.attention.end() ? 0 : item->count);
  }
}

}  // namespace loopfleet::coordinator
