#include "coordinator/shell/fleet_status.h"

#include <fmt/format.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/counted.h"
#include "common/fleet/attention.h"

namespace loopfleet::coordinator {
namespace {

std::string TextOf(const WorkerChanged& changed) {
  switch (changed.change) {
    case WorkerChange::kReattached: return fmt::format("kept {} leases", changed.leases);
    case WorkerChange::kLeft:
    case WorkerChange::kLost:
      return changed.leases == 0 ? "" : fmt::format("{} leases go to others", changed.leases);
    case WorkerChange::kQuarantined:
      return fmt::format(
          "it gets only jobs that no other worker could run, its figures are in "
          "doubt: {}",
          QuarantineText(changed.quarantine));
    case WorkerChange::kJoined:
    case WorkerChange::kRefused:
    case WorkerChange::kReleased:
    case WorkerChange::kDrained:
    case WorkerChange::kResumed: return "";
  }
  LF_CHECK(false, "worker change {}", static_cast<int>(changed.change));
}

}  // namespace

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

FleetStatus::FleetStatus(const Clock& clock, const Options& options)
    : clock_(clock), version_(options.version), started_at_(clock.WallNow()), events_(clock) {}

void FleetStatus::Recovered(std::uint64_t epoch, std::size_t batches, std::size_t jobs) {
  events_.Add(
      {.kind = "coordinator.started",
       .count = jobs,
       .text = fmt::format("start number {}", epoch) +
               (batches == 0 ? ""
                             : fmt::format("; unfinished: {} of {}", Counted(jobs, "job", "jobs"),
                                           Counted(batches, "batch", "batches")))});
}

void FleetStatus::Accepted(const JobsWereAccepted& accepted) {
  accepted_ += accepted.count;
  if (!accepted.batch) return;  // an internal batch
  if (accepted.end == wire::BatchEnd::kComplete) {
    events_.Add({.kind = "batch.accepted", .batch = accepted.batch, .count = accepted.batch_jobs});
  } else if (accepted.first_index == 0) {
    events_.Add({.kind = "batch.opened", .batch = accepted.batch, .count = accepted.batch_jobs});
  }
}

void FleetStatus::Finished(const FinishedJob& finished) {
  ++finished_;
  if (finished.failure) {
    ++failures_[*finished.failure];
  } else if (finished.source != OutcomeSource::kMeasured) {
    ++shared_;
  }
}

void FleetStatus::BatchFinished(const BatchWasFinished& finished) {
  events_.Add({.kind = finished.cancelled ? "batch.cancelled" : "batch.finished",
               .batch = finished.batch,
               .count = finished.jobs});
}

void FleetStatus::Changed(const WorkerChanged& changed) {
  wire::FleetEvent event{.kind = fmt::format("worker.{}", NameOf(changed.change)),
                         .subject = changed.name,
                         .count = changed.leases,
                         .text = TextOf(changed)};
  if (changed.change != WorkerChange::kRefused) return events_.Add(std::move(event));
  event.count = 1;  // refusals: a worker is refused as often as it asks
  events_.AddToLast(std::move(event));
}

void FleetStatus::Implausible(const ReportWasImplausible& report) {
  events_.Add({.kind = "report.implausible", .subject = report.worker, .text = report.reason});
}

void FleetStatus::Disagreed(const WorkersDisagreed& disagreed) {
  events_.Add({.kind = "workers.disagreed",
               .subject = disagreed.failed,
               .text = fmt::format("{} of job {}, which {} measured", InfoOf(disagreed.code).name,
                                   disagreed.job, disagreed.measured)});
}

void FleetStatus::SetStorageTrouble(std::optional<ErrorKind> trouble) {
  const bool full = trouble == ErrorKind::kFull;
  if ((std::exchange(storage_trouble_, trouble) == ErrorKind::kFull) == full) return;
  events_.Add({.kind = full ? "storage.full" : "storage.has_room",
               .text = full ? "no room on the disk of the database: nothing is accepted" : ""});
}

void FleetStatus::SetMirror(MirrorModel mirror) {
  const bool had_trouble = mirror_ && !mirror_->trouble.empty();
  if (had_trouble != !mirror.trouble.empty()) {
    events_.Add({.kind = had_trouble ? "mirror.works" : "mirror.trouble", .text = mirror.trouble});
  }
  mirror_ = std::move(mirror);
}

void FleetStatus::Stopping() { events_.Add({.kind = "coordinator.stopping"}); }

void FleetStatus::AddTo(FleetModel& fleet) const {
  const JobSteps::Step recent = steps_.Last(std::chrono::minutes(5));
  fleet.storage_trouble = storage_trouble_;
  fleet.mirror = mirror_;
  fleet.recently_finished = recent.finished;
  fleet.recently_judged = recent.judged;
  fleet.recently_failed = recent.failed;
}

wire::FleetInfo FleetStatus::Complete(FleetModel model, const wire::ShowFleet& question) const {
  AddTo(model);
  wire::FleetInfo fleet = FleetInfoOf(model);
  fleet.health = HealthOf(model);
  fleet.started_at = started_at_;
  fleet.now = clock_.WallNow();
  fleet.version = version_;
  fleet.http = http_;
  fleet.accepted_jobs = accepted_;
  fleet.finished_jobs = finished_;
  fleet.shared_jobs = shared_;
  fleet.last_event = events_.last();
  fleet.events = events_.After(question.after_event, question.max_events);
  for (const auto& [code, count] : failures_) {
    fleet.failed_jobs += count;
    fleet.failures.push_back({.code = std::string(InfoOf(code).name), .count = count});
  }
  return fleet;
}

}  // namespace loopfleet::coordinator
