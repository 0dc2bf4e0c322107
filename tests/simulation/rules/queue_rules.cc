#include "tests/simulation/rules/queue_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "coordinator/core/rules/placement.h"
#include "coordinator/core/tables/lease_table.h"
#include "tests/simulation/job_pool.h"

namespace loopfleet::simulation {
namespace {

// The most jobs that one other client may be granted before a waiting client gets its first. Above
// what fair queueing allows at workers of several kinds.
constexpr std::uint32_t kMostTurnsBeforeTheFirst = 12;

Nanos DeadlineOf(const JobSpec& spec) {
  return std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(spec.deadline_s));
}

}  // namespace

void QueueRules::Started() {
  specs_.clear();
  suspicions_.clear();
  waiting_.clear();
  served_.clear();
  affinities_.clear();
  workers_.clear();
  troubles_.clear();
}

void QueueRules::WillAccept(Instant now, const storage::JobsAccepted& accepted) {
  for (std::uint32_t i = 0; i < accepted.jobs.size(); ++i) {
    const JobId id{.batch = accepted.batch, .index = accepted.first_index + i};
    accepting_[id] = {.at = now, .wall = accepted.accepted_at, .client = accepted.client};
    if (IsPlain(accepted.jobs[i])) specs_[id] = accepted.jobs[i];
    // A job that did not reach the disk was never accepted; after a restart another may get its id.
    bound_.erase(id);
    if (!accepted.jobs[i].affinity.empty()) bound_[id] = accepted.jobs[i].affinity;
  }
}

bool QueueRules::IsPlain(const JobSpec& spec) const {
  if (spec.freshness != Freshness::kMeasureAgain || spec.deadline_s != 0 || !spec.labels.empty() ||
      !spec.affinity.empty()) {
    return false;
  }
  const auto replayed = JobPool::Replay(spec);
  const auto* measure = std::get_if<ResolvedTask>(&replayed);
  return measure != nullptr && measure->placement == Placement::kCpu;
}

void QueueRules::Accepted(Instant now, JobId first, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const JobId id{.batch = first.batch, .index = first.index + i};
    const auto spec = specs_.find(id);
    if (spec == specs_.end()) continue;
    waiting_[id] = {.client = accepting_.at(id).client,
                    .priority = spec->second.priority,
                    .since = now,
                    .others = {}};
    specs_.erase(spec);  // a repeated answer has no effect
  }
}

void QueueRules::CancelHeard(BatchId batch) {
  std::erase_if(waiting_, [&](const auto& entry) { return entry.first.batch == batch; });
  std::erase_if(specs_, [&](const auto& entry) { return entry.first.batch == batch; });
  std::erase_if(suspicions_, [&](const Suspicion& each) { return each.waiting.batch == batch; });
}

QueueRules::Broken QueueRules::MayRun(Instant now, const wire::Lease& lease,
                                      const wire::WorkerHello& worker) const {
  for (const std::string& label : lease.spec.labels) {
    if (std::ranges::find(worker.labels, label) == worker.labels.end()) {
      return fmt::format("job {} demands '{}', which {} lacks", lease.job, label, worker.name);
    }
  }
  const auto accepted = accepting_.find(lease.job);
  const bool is_known = accepted != accepting_.end() && mix_[Fault::kClockJump] == 0;
  if (lease.spec.deadline_s != 0 && is_known &&
      now >= accepted->second.at + DeadlineOf(lease.spec)) {
    return fmt::format("job {} is leased after its deadline", lease.job);
  }
  return std::nullopt;
}

QueueRules::Broken QueueRules::CheckOrder(Instant now) const {
  for (const Suspicion& suspicion : suspicions_) {
    if (suspicion.at < now) return suspicion.text;
  }
  return std::nullopt;
}

void QueueRules::RecordGrant(Instant now, const wire::Lease& lease, const wire::WorkerHello& worker,
                             Binds binds) {
  std::erase_if(suspicions_, [&](const Suspicion& suspicion) {
    return suspicion.waiting == lease.job && lease.lease < suspicion.lease;
  });
  const auto own = waiting_.extract(lease.job);
  const auto accepted = accepting_.find(lease.job);
  if (accepted == accepting_.end()) return;
  const Uuid client = accepted->second.client;
  served_.insert(client);
  // A retry goes before all queued jobs.
  if (worker.hardware.device != DeviceKind::kCpu || lease.attempt > 1) return;
  // A worker in quarantine gets only jobs that no other could run, so it says nothing about the
  // order of plain jobs.
  const bool is_plain = lease.spec.labels.empty() && lease.spec.affinity.empty();
  if (binds == Binds::kNothing && !is_plain) return;
  const auto suspect = [&](JobId waiting, std::string text) {
    suspicions_.push_back({waiting, lease.lease, now, std::move(text)});
  };
  for (auto& [id, waiting] : waiting_) {
    if (now - waiting.since >= mix_.limits.no_worker_grace) continue;  // may have ended
    if (waiting.client == client) {
      const bool is_later = !own.empty() && id.batch == lease.job.batch && id < lease.job &&
                            waiting.priority == lease.spec.priority;
      if (waiting.priority > lease.spec.priority || is_later) {
        suspect(id, fmt::format("job {} of priority {} goes before {} of priority {}", lease.job,
                                lease.spec.priority, id, waiting.priority));
      }
    } else if (!served_.contains(waiting.client) &&
               ++waiting.others[client] > kMostTurnsBeforeTheFirst) {
      suspect(id, fmt::format("job {} waits while another client is served {} times", id,
                              waiting.others[client]));
    }
  }
}

QueueRules::Broken QueueRules::Finished(const Outcome& outcome, const JobSpec& spec) const {
  if (!outcome.evaluation.ok()) return std::nullopt;
  if (spec.deadline_s != 0 && mix_[Fault::kClockJump] == 0 && IsOverdue(outcome, spec)) {
    return fmt::format("job {} is measured after its deadline", outcome.job);
  }
  return std::nullopt;
}

QueueRules::Broken QueueRules::WillFinish(const Outcome& outcome, const Is& is_silent,
                                          const Is& takes_jobs) {
  const auto job = bound_.find(outcome.job);
  if (job == bound_.end() || outcome.source != OutcomeSource::kStored) return std::nullopt;
  const auto worker = workers_.find(outcome.worker);
  if (worker == workers_.end()) {
    return fmt::format("job {} is answered by {}, which is not there", outcome.job, outcome.worker);
  }
  // The stored result was looked up when the job was submitted. Later trouble of either worker is
  // an excuse.
  const auto bound = affinities_.find(job->second);
  const bool is_prompt = mix_[Fault::kSlowDisk] == 0 && mix_[Fault::kFreezeWorker] == 0;
  if (is_prompt && bound != affinities_.end() && bound->second.worker != worker->second &&
      troubles_[worker->second] <= 1 && troubles_[bound->second.worker] <= 1 &&
      !is_silent(bound->second.worker)) {
    return fmt::format("job {} is answered by {}, which is not its affinity's worker", outcome.job,
                       outcome.worker);
  }
  if (bound == affinities_.end() || is_silent(bound->second.worker)) {
    affinities_.erase(job->second);
    if (takes_jobs(worker->second)) {
      affinities_[job->second] = {worker->second, troubles_[worker->second]};
    }
  }
  return std::nullopt;
}

bool QueueRules::IsOverdue(const Outcome& outcome, const JobSpec& spec) const {
  if (spec.deadline_s == 0) return false;
  const auto accepted = accepting_.find(outcome.job);
  if (accepted == accepting_.end() || mix_[Fault::kClockJump] > 0) return true;  // unknown
  return outcome.finished_at >= accepted->second.wall + DeadlineOf(spec);
}

}  // namespace loopfleet::simulation
