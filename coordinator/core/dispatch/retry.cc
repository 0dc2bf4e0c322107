#include "coordinator/core/dispatch/retry.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "coordinator/core/dispatch/bulk_completion.h"
#include "coordinator/core/dispatch/expiry.h"
#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/queueing.h"

namespace loopfleet::coordinator {
namespace {

bool Failed(const Job& job, const Uuid& worker) {
  return std::ranges::find(job.failed_attempts, worker, &FailedAttempt::worker) !=
         job.failed_attempts.end();
}

// Whether the job could run on this worker, as one that has not failed it. Whatever this depends on
// changes with a change of the registry.
bool IsAlternative(const Transaction& tx, const Job& job, const Worker& worker) {
  tx.state.retries.CountLook();
  const bool same_class = !job.first_verdict ||
                          job.first_verdict->hardware_class == worker.facts.hardware.hardware_class;
  return worker.state == wire::WorkerState::kReady && worker.peer && same_class &&
         Serves(worker.supply(), DemandOf(job)) && !Failed(job, worker.id());
}

bool HasAlternative(const Transaction& tx, const Job& job) {
  return std::ranges::any_of(tx.state.workers.all(), [&](const auto& entry) {
    return IsAlternative(tx, job, entry.second);
  });
}

// Whether the worker is on the host that gave the first verdict: what is broken there may be broken
// for this worker, too.
bool SharesHost(const Job& job, const Worker& worker) {
  return job.first_verdict && job.first_verdict->host == worker.facts.hardware.host;
}

bool HasAlternativeOnAnotherHost(const Transaction& tx, const Job& job) {
  return std::ranges::any_of(tx.state.workers.all(), [&](const auto& entry) {
    return !SharesHost(job, entry.second) && IsAlternative(tx, job, entry.second);
  });
}

// The alternative with free credit that has been idle longest, else one that holds jobs, of those
// that became free since the last look; null if there is none. One that shares the first verdict's
// host counts only at the end, or if no other host has one.
Worker* FreeAlternative(Transaction& tx, const Job& job, WaitsForAnother& waits) {
  WorkerRegistry& workers = tx.state.workers;
  const bool is_last_look = tx.now.instant >= waits.until;
  const bool looks_at_all =
      job.first_verdict && (is_last_look || waits.changes != workers.changes());
  const std::uint64_t last = std::exchange(waits.rank, workers.last_rank());
  const std::uint64_t after = looks_at_all ? 0 : last;
  if (after == workers.last_rank()) return nullptr;  // none became free
  std::optional<bool> has_other_host;
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    if (!Serves(device, job.placement)) continue;
    for (const Load load : {Load::kIdle, Load::kBusy}) {
      for (Worker* worker = workers.NextCandidate(device, load, after); worker != nullptr;
           worker = workers.NextCandidate(device, load, worker->rank)) {
        if (!IsAlternative(tx, job, *worker)) continue;
        if (is_last_look || !SharesHost(job, *worker)) return worker;
        if (!has_other_host) has_other_host = HasAlternativeOnAnotherHost(tx, job);
        if (!*has_other_host) return worker;
      }
    }
  }
  return nullptr;
}

bool StillHasAlternative(Transaction& tx, const Job& job, WaitsForAnother& waits) {
  const std::uint64_t changes = tx.state.workers.changes();
  return std::exchange(waits.changes, changes) == changes || HasAlternative(tx, job);
}

// There must be an alternative.
void WaitForAnother(Transaction& tx, Job& job) {
  const WaitsForAnother waits{.until = tx.now.instant + tx.limits().retry_elsewhere,
                              .changes = tx.state.workers.changes()};
  job.progress = Retrying{tx.state.retries.Add({.job = job.id, .what = waits})};
}

void SendLeases(Transaction& tx, const Worker& worker, wire::Leases leases) {
  if (leases.leases.empty()) return;
  tx.effects.push_back(SendToWorker{.peer = *worker.peer, .command = std::move(leases)});
}

void GrantElsewhere(Transaction& tx, RetryTable::Order order, WaitsForAnother& waits, Job& job) {
  if (Worker* worker = FreeAlternative(tx, job, waits)) {
    tx.state.retries.Remove(order);
    wire::Leases leases;
    if (MustRunAlone(job)) {
      RunAlone(tx, *worker, job.id, leases);
    } else {
      leases.leases.push_back(GrantLease(tx, *worker, job.id));
    }
    SendLeases(tx, *worker, std::move(leases));
  } else if (tx.now.instant >= waits.until || !StillHasAlternative(tx, job, waits)) {
    if (EndWithFirstVerdict(tx, job.id)) return;
    tx.state.retries.Remove(order);
    PutInFront(tx, job);
  }
}

// Whether the worker is still reserved for this job, and may run it.
bool IsReserved(const Transaction& tx, const Worker* worker, const Job& job) {
  return worker != nullptr && worker->peer && worker->reservation &&
         worker->reservation->job == job.id &&
         IsAssignable(worker->state, tx.state.workers.HasReady(DemandOf(job)));
}

void GrantAlone(Transaction& tx, RetryTable::Order order, const Uuid& id, Job& job) {
  Worker* worker = tx.state.workers.Find(id);
  if (!IsReserved(tx, worker, job)) {
    LeaveRetries(tx, job);
    PutInFront(tx, job);
  } else if (worker->running.empty() && worker->FreeCredit() > 0) {
    tx.state.retries.Remove(order);
    wire::Leases leases;
    leases.leases.push_back(GrantLease(tx, *worker, job.id));
    SendLeases(tx, *worker, std::move(leases));
  }
}

}  // namespace

bool TryAgain(Transaction& tx, const Worker& worker, LeaseId lease, const Evaluation& evaluation,
              const std::string& doubt) {
  if (evaluation.ok()) return false;
  Job& job = tx.state.jobs.At(tx.state.leases.Find(lease)->job);
  const FailureCode code = evaluation.failure().code;
  const Retry& retry = InfoOf(code).policy.retry;
  if (job.attempts() >= tx.limits().max_attempts) return false;
  const auto before = std::ranges::count(job.failed_attempts, code, &FailedAttempt::code);
  if (before + 1 >= retry.verdicts) return false;
  const bool keeps_its_worker = !job.spec.affinity.empty();
  const std::string& host = worker.facts.hardware.host;
  job.failed_attempts.push_back({.worker = worker.id(),
                                 .lease = lease,
                                 .code = code,
                                 .witness = {.worker = worker.facts.name, .host = host},
                                 .kind = KindOf(worker.facts),
                                 .in_doubt = !doubt.empty()});
  if (retry.where == Retry::Where::kOnlyElsewhere) {
    FirstVerdict verdict{.evaluation = evaluation,
                         .worker = worker.facts.name,
                         .hardware_class = worker.facts.hardware.hardware_class,
                         .host = host,
                         .doubt = doubt};
    job.first_verdict = std::make_shared<const FirstVerdict>(std::move(verdict));
  }
  const bool waits = !keeps_its_worker && HasAlternative(tx, job);
  if (retry.where == Retry::Where::kOnlyElsewhere && !waits) {
    job.failed_attempts.pop_back();
    job.first_verdict.reset();
    return false;
  }
  tx.effects.push_back(Observation{JobWasRetried{code}});
  EndLease(tx, lease);
  if (waits) {
    WaitForAnother(tx, job);
  } else {
    PutInFront(tx, job);
  }
  return true;
}

bool AskAnother(Transaction& tx, Job& job) {
  if (!job.first_verdict || !HasAlternative(tx, job)) return false;
  WaitForAnother(tx, job);
  return true;
}

bool EndWithFirstVerdict(Transaction& tx, JobId id) {
  const Job& job = tx.state.jobs.At(id);
  if (!job.first_verdict) return false;
  const auto verdict = job.first_verdict;  // outlives the job
  FinishJob(tx, id,
            {.verdict = Verdict::kAboutTheTree,
             .evaluation = verdict->evaluation,
             .worker = verdict->worker,
             .doubt = verdict->doubt});
  return true;
}

void GrantRetries(Transaction& tx) {
  State& state = tx.state;
  const auto waiting = state.retries.Next(state.limits.max_retries_per_event);
  for (const auto& [order, entry] : waiting) {
    // A job that ended in this loop may have ended equal ones with it.
    if (!state.retries.entries().contains(order)) continue;
    Job& job = state.jobs.At(entry.job);
    if (IsCancelled(state, job.id)) {
      Cancel(tx, job.id);
    } else if (job.expires_at <= tx.now.instant) {
      Expire(tx, job.id);
    } else if (auto* waits = std::get_if<WaitsForAnother>(&state.retries.At(order).what)) {
      GrantElsewhere(tx, order, *waits, job);
    } else {
      GrantAlone(tx, order, std::get<WaitsToBeAlone>(entry.what).worker, job);
    }
  }
}

bool MustRunAlone(const Job& job) { return job.losses > 0; }

void RunAlone(Transaction& tx, Worker& worker, JobId id, wire::Leases& leases) {
  tx.state.workers.Reserve(worker, id);
  if (worker.running.empty()) {
    leases.leases.push_back(GrantLease(tx, worker, id));
  } else {
    Job& job = tx.state.jobs.At(id);
    if (job.sharing == Sharing::kShares) LeadFlight(tx, job);  // its equals must not overtake it
    job.progress =
        Retrying{tx.state.retries.Add({.job = id, .what = WaitsToBeAlone{.worker = worker.id()}})};
  }
}

void NoteContradiction(Transaction& tx, const Worker& worker, const Job& job) {
  if (!job.first_verdict) return;
  tx.effects.push_back(
      Observation{WorkersDisagreed{.failed = job.first_verdict->worker,
                                   .measured = worker.facts.name,
                                   .job = job.id,
                                   .code = job.first_verdict->evaluation.failure().code}});
}

}  // namespace loopfleet::coordinator
