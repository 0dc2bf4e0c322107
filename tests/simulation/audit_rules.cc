#include "tests/simulation/audit_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/job_pool.h"
#include "tests/simulation/message_text.h"

namespace loopfleet::simulation {

void AuditRules::Heard(const Uuid& client, const Uuid& request) {
  heard_.try_emplace({client, request}, written_);
}

void AuditRules::Heard(const PeerId& peer, const wire::WorkerMessage& message) {
  if (const auto* hello = std::get_if<wire::WorkerHello>(&message)) workers_[peer] = *hello;
}

AuditRules::Broken AuditRules::Said(const PeerId& peer, const wire::WorkerCommand& command) const {
  const auto* leases = std::get_if<wire::Leases>(&command);
  const auto worker = workers_.find(peer);
  if (leases == nullptr || worker == workers_.end()) return std::nullopt;
  for (const wire::Lease& lease : leases->leases) {
    if (Broken broken = Granted(lease, worker->second)) return broken;
  }
  return std::nullopt;
}

AuditRules::Broken AuditRules::WillWrite(const storage::Write& write) {
  if (const auto* accepted = std::get_if<storage::JobsAccepted>(&write)) {
    if (accepted->client == Uuid{}) own_batches_.insert(accepted->batch);
    const auto heard = heard_.find({accepted->client, accepted->request_id});
    if (heard == heard_.end()) return std::nullopt;
    for (std::uint32_t i = 0; i < accepted->jobs.size(); ++i) {
      looked_up_[{.batch = accepted->batch, .index = accepted->first_index + i}] = heard->second;
    }
  } else if (const auto* finished = std::get_if<storage::JobFinished>(&write)) {
    const Outcome& outcome = finished->outcome;
    if (outcome.source != OutcomeSource::kMeasured || !outcome.evaluation.ok()) return std::nullopt;
    measured_by_[*outcome.evaluation.tree_key].emplace(
        outcome.worker, outcome.evaluation.conditions->hardware.hardware_class);
  } else if (const auto* answered = std::get_if<storage::JobsAnswered>(&write)) {
    return WillAnswer(*answered);
  }
  return std::nullopt;
}

AuditRules::Broken AuditRules::WillAnswer(const storage::JobsAnswered& answered) const {
  for (const storage::JobsAnswered::One& one : answered.jobs) {
    if (!one.answer->evaluation.ok()) continue;
    const auto suspect = suspects_.find(FingerprintOf(one.answer->evaluation));
    const auto looked_up = looked_up_.find(one.job);
    if (suspect == suspects_.end() || looked_up == looked_up_.end()) continue;
    if (suspect->second <= looked_up->second) {
      return fmt::format("job {} is answered with what {} measured, which had been put in doubt",
                         one.job, one.answer->worker);
    }
  }
  return std::nullopt;
}

void AuditRules::Wrote(const storage::Write& write) {
  if (const auto* finished = std::get_if<storage::JobFinished>(&write)) {
    const Outcome& outcome = finished->outcome;
    if (outcome.source != OutcomeSource::kMeasured || !outcome.evaluation.ok()) return;
    measured_[outcome.worker][outcome.job] = {.fingerprint = FingerprintOf(outcome.evaluation),
                                              .at = outcome.finished_at};
  } else if (const auto* suspected = std::get_if<storage::ResultsSuspected>(&write)) {
    for (const auto& [job, measured] : measured_[suspected->worker]) {
      if (measured.at >= suspected->since) Suspect(measured.fingerprint);
    }
  } else if (const auto* doubted = std::get_if<storage::ResultDoubted>(&write)) {
    for (const auto& [worker, jobs] : measured_) {
      if (const auto job = jobs.find(doubted->job); job != jobs.end()) {
        Suspect(job->second.fingerprint);
      }
    }
  }
}

AuditRules::Broken AuditRules::Granted(const wire::Lease& lease,
                                       const wire::WorkerHello& worker) const {
  // What a worker that drifts has measured is measured anew in such batches, too, by anybody.
  if (!own_batches_.contains(lease.job.batch) || mix_[Fault::kDriftWorker] > 0) return std::nullopt;
  const auto replayed = JobPool::Replay(lease.spec);
  const auto* measure = std::get_if<coordinator::ToMeasure>(&replayed);
  if (measure == nullptr) return fmt::format("job {} of nobody's cannot be replayed", lease.job);
  const auto by = measured_by_.find(measure->tree);
  const bool is_anothers =
      by != measured_by_.end() && std::ranges::any_of(by->second, [&](const auto& one) {
        return one.first != worker.name && one.second == worker.hardware.hardware_class;
      });
  if (is_anothers) return std::nullopt;
  return fmt::format("job {} audits what no other worker of its class than {} has measured",
                     lease.job, worker.name);
}

}  // namespace loopfleet::simulation
