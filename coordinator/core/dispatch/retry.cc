#include "coordinator/core/dispatch/retry.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "coordinator/core/dispatch/bulk_completion.h"
#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/rules/retry_rules.h"

namespace loopfleet::coordinator {
namespace {

bool Failed(const Job& job, const Uuid& worker) {
  return std::ranges::find(job.failed_turns, worker, &FailedTurn::worker) != job.failed_turns.end();
}

// Whether the job could be asked of this worker instead of those that failed it.
bool IsAlternative(const Job& job, const Worker& worker) {
  const bool same_class = !job.first_verdict ||
                          job.first_verdict->hardware_class == worker.facts.hardware.hardware_class;
  return worker.state == wire::WorkerState::kReady && worker.peer && same_class &&
         Serves(worker.supply(), DemandOf(job)) && !Failed(job, worker.id());
}

bool HasAlternative(const Turn& turn, const Job& job) {
  return std::ranges::any_of(turn.state.workers.all(),
                             [&](const auto& entry) { return IsAlternative(job, entry.second); });
}

// The one of those with free credit that has waited longest.
Worker* FreeAlternative(Turn& turn, const Job& job) {
  WorkerRegistry& workers = turn.state.workers;
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    if (!Serves(device, job.placement)) continue;
    for (Worker* worker = workers.NextCandidate(device, 0); worker != nullptr;
         worker = workers.NextCandidate(device, worker->rank)) {
      if (IsAlternative(job, *worker)) return worker;
    }
  }
  return nullptr;
}

void WaitForAnother(Turn& turn, Job& job) {
  const Instant until = turn.now.instant + turn.limits().retry_elsewhere;
  job.progress =
      Retrying{turn.state.retries.Add({.job = job.id, .what = WaitsForAnother{.until = until}})};
}

void SendLeases(Turn& turn, const Worker& worker, wire::Leases leases) {
  if (leases.leases.empty()) return;
  turn.effects.push_back(SendToWorker{.peer = *worker.peer, .command = std::move(leases)});
}

void GrantElsewhere(Turn& turn, RetryTable::Order order, Instant until, Job& job) {
  if (Worker* worker = FreeAlternative(turn, job)) {
    turn.state.retries.Remove(order);
    wire::Leases leases;
    if (MustRunAlone(job)) {
      RunAlone(turn, *worker, job.id, leases);
    } else {
      leases.leases.push_back(GrantLease(turn, *worker, job.id));
    }
    SendLeases(turn, *worker, std::move(leases));
  } else if (turn.now.instant >= until || !HasAlternative(turn, job)) {
    if (EndWithFirstVerdict(turn, job.id)) return;
    turn.state.retries.Remove(order);
    PutInFront(turn, job);
  }
}

// The worker is still there for this job.
bool IsReserved(const Turn& turn, const Worker* worker, const Job& job) {
  return worker != nullptr && worker->peer && worker->reservation &&
         worker->reservation->job == job.id &&
         MayBeGiven(worker->state, turn.state.workers.HasReady(DemandOf(job)));
}

void GrantAlone(Turn& turn, RetryTable::Order order, const Uuid& id, Job& job) {
  Worker* worker = turn.state.workers.Find(id);
  if (!IsReserved(turn, worker, job)) {
    LeaveRetries(turn, job);
    PutInFront(turn, job);
  } else if (worker->running.empty()) {
    turn.state.retries.Remove(order);
    wire::Leases leases;
    leases.leases.push_back(GrantLease(turn, *worker, job.id));
    SendLeases(turn, *worker, std::move(leases));
  }
}

}  // namespace

bool TryAgain(Turn& turn, const Worker& worker, LeaseId lease, const Evaluation& evaluation) {
  if (evaluation.ok()) return false;
  Job& job = turn.state.jobs.At(turn.state.leases.Find(lease)->job);
  const FailureCode code = evaluation.failure().code;
  const RetryRule* rule = RetryRuleOf(code);
  if (rule == nullptr || job.attempts() >= turn.limits().max_attempts) return false;
  const auto before = std::ranges::count(job.failed_turns, code, &FailedTurn::code);
  if (before + 1 >= rule->turns) return false;
  const bool keeps_its_worker = !job.spec.affinity.empty();
  job.failed_turns.push_back({.worker = worker.id(), .lease = lease, .code = code});
  if (rule->where == Where::kOnlyElsewhere) {
    FirstVerdict verdict{.evaluation = evaluation,
                         .worker = worker.facts.name,
                         .hardware_class = worker.facts.hardware.hardware_class};
    job.first_verdict = std::make_shared<const FirstVerdict>(std::move(verdict));
  }
  const bool waits = !keeps_its_worker && HasAlternative(turn, job);
  if (rule->where == Where::kOnlyElsewhere && !waits) {
    job.failed_turns.pop_back();
    job.first_verdict.reset();
    return false;
  }
  turn.effects.push_back(Observation{JobWasRetried{code}});
  EndLease(turn, lease);
  if (waits) {
    WaitForAnother(turn, job);
  } else {
    PutInFront(turn, job);
  }
  return true;
}

bool AskAnother(Turn& turn, Job& job) {
  if (!job.first_verdict || !HasAlternative(turn, job)) return false;
  WaitForAnother(turn, job);
  return true;
}

bool EndWithFirstVerdict(Turn& turn, JobId id) {
  const Job& job = turn.state.jobs.At(id);
  if (!job.first_verdict) return false;
  const auto verdict = job.first_verdict;  // the job goes
  FinishJob(turn, id,
            {.verdict = Verdict::kAboutTheTree,
             .evaluation = verdict->evaluation,
             .worker = verdict->worker});
  return true;
}

void GrantRetries(Turn& turn) {
  State& state = turn.state;
  const auto waiting = state.retries.Next(state.limits.max_retries_per_turn);
  for (const auto& [order, entry] : waiting) {
    // A job that ended meanwhile may have taken equal ones with it.
    if (!state.retries.entries().contains(order)) continue;
    Job& job = state.jobs.At(entry.job);
    if (IsCancelled(state, job.id)) {
      Cancel(turn, job.id);
    } else if (const auto* elsewhere = std::get_if<WaitsForAnother>(&entry.what)) {
      GrantElsewhere(turn, order, elsewhere->until, job);
    } else {
      GrantAlone(turn, order, std::get<WaitsToBeAlone>(entry.what).worker, job);
    }
  }
}

bool MustRunAlone(const Job& job) { return job.losses > 0; }

void RunAlone(Turn& turn, Worker& worker, JobId id, wire::Leases& leases) {
  turn.state.workers.Reserve(worker, id);
  if (worker.running.empty()) {
    leases.leases.push_back(GrantLease(turn, worker, id));
  } else {
    Job& job = turn.state.jobs.At(id);
    if (job.sharing == Sharing::kShares) LeadFlight(turn, job);  // its equals are not to pass it
    job.progress = Retrying{
        turn.state.retries.Add({.job = id, .what = WaitsToBeAlone{.worker = worker.id()}})};
  }
}

void NoteContradiction(Turn& turn, const Worker& worker, const Job& job) {
  if (!job.first_verdict) return;
  turn.effects.push_back(
      Observation{WorkersDisagreed{.failed = job.first_verdict->worker,
                                   .measured = worker.facts.name,
                                   .job = job.id,
                                   .code = job.first_verdict->evaluation.failure().code}});
}

}  // namespace loopfleet::coordinator
