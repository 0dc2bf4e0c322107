#include "coordinator/core/core.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "coordinator/core/dispatch/bulk_completion.h"
#include "coordinator/core/dispatch/dispatch.h"
#include "coordinator/core/dispatch/expiry.h"
#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/dispatch/rebalance.h"
#include "coordinator/core/handlers/client_quota.h"
#include "coordinator/core/handlers/on_client.h"
#include "coordinator/core/handlers/on_drain.h"
#include "coordinator/core/handlers/on_submit.h"
#include "coordinator/core/handlers/on_worker.h"
#include "coordinator/core/state/client_charge.h"
#include "coordinator/core/state/client_reply.h"

namespace loopfleet::coordinator {
namespace {

// Unfinished jobs count toward usage at once, even if they are loaded later; their bytes count when
// they are.
void RecoverBatch(Transaction& tx, const storage::StoredBatch& stored) {
  Batch& batch = tx.state.batches.Add({.id = stored.batch,
                                       .client = stored.client,
                                       .open = !stored.closed && !stored.cancelled,
                                       .client_heard_at = tx.now.instant,
                                       .cancelled = stored.cancelled,
                                       .job_count = stored.job_count,
                                       .accepted = stored.job_count,
                                       .finished = stored.finished,
                                       .durable = stored.finished});
  tx.state.usage.OpenBatch(stored.client);
  ChargeJobs(tx, batch, stored.job_count - stored.finished, 0);
}

// When the job was accepted, on this run's clock. Derived from wall time, the only clock that
// survives a restart: if it was set back since, the job gets its whole time again.
Instant AcceptedAt(const Transaction& tx, const Recovered::Job& job) {
  if (!job.accepted_at) return tx.now.instant;
  constexpr Nanos kLongest = std::chrono::seconds(static_cast<std::int64_t>(kLongestDeadlineS));
  return tx.now.instant - std::clamp(tx.now.wall - *job.accepted_at, Nanos{0}, kLongest);
}

void EnterRecovered(Transaction& tx, std::vector<Recovered::Job> jobs) {
  for (Recovered::Job& job : jobs) {
    // A job that failed to resolve ends with that failure, even in a cancelled batch.
    if (IsCancelled(tx.state, job.id) && !std::holds_alternative<Failure>(job.job.resolution)) {
      job.job.resolution = CancelledFailure();
    }
    if (const auto* measure = std::get_if<ResolvedTask>(&job.job.resolution);
        measure != nullptr && job.job.spec.freshness != Freshness::kMeasureAgain) {
      tx.state.single_flight.Expect(QuestionOf(job.job.spec, *measure));
    }
    ChargeJobs(tx, tx.state.batches.At(job.id.batch), 0, MemoryBytesOf(job.job.spec));
    const Instant accepted_at = AcceptedAt(tx, job);
    EnterJob(tx, job.id, std::move(job.job), accepted_at);
    if (Job* entered = tx.state.jobs.Find(job.id)) entered->is_recovered = true;
  }
}

void EnterDamaged(Transaction& tx, const std::vector<JobId>& damaged) {
  for (const JobId id : damaged) {
    ResolvedJob job{.resolution = Failure{
                        .code = FailureCode::kStorageCorrupt,
                        .message = fmt::format("what job {} asked can no longer be read", id)}};
    EnterJob(tx, id, std::move(job), tx.now.instant);
  }
}

void OnRecovered(Transaction& tx, Recovered event) {
  State& state = tx.state;
  LF_CHECK(state.epoch == 0, "recovered twice");
  state.epoch = event.epoch;
  state.incarnation = event.incarnation;
  state.next_batch = event.next_batch;
  state.leases.StartEpoch(event.epoch);
  state.started_at = state.ticked_at = tx.now.instant;
  for (const storage::ReferenceClock& clock : event.reference_clocks) {
    state.reference_clocks.try_emplace(clock.hardware_class,
                                       KnownClock{.mhz = clock.mhz, .has_outcomes = true});
  }
  for (storage::WorkersDrained& drained : event.drains) {
    std::string target = drained.target;
    state.drains.emplace(std::move(target), std::move(drained));
  }
  if (!event.jobs.empty() || event.jobs_to_come > 0) {
    state.grants_from = tx.now.instant + state.limits.reattach_grace;
    state.reattach_until = tx.now.instant + state.limits.late_reattach;
  }
  if (event.jobs_to_come > 0) state.recovering.emplace().jobs_to_come = event.jobs_to_come;
  for (const storage::StoredBatch& stored : event.batches) RecoverBatch(tx, stored);
  EnterRecovered(tx, std::move(event.jobs));
  EnterDamaged(tx, event.damaged);
  for (const storage::StoredBatch& stored : event.batches) {
    RemoveIfOver(tx, stored.batch);
  }
}

void OnJobsRecovered(Transaction& tx, JobsRecovered event) {
  State& state = tx.state;
  LF_CHECK(state.recovering, "nothing was to come");
  Recovering& recovering = *state.recovering;
  const bool is_early = event.part == JobsRecovered::Part::kEarly;
  const auto came_before = [&](JobId id) { return recovering.early.contains(id); };
  std::erase_if(event.jobs, [&](const Recovered::Job& job) {
    // A worker may hold two leases of a job: one that it has given back, and a new one.
    return is_early ? !recovering.early.insert(job.id).second : came_before(job.id);
  });
  std::erase_if(event.damaged, came_before);
  recovering.jobs_to_come -=
      std::min(recovering.jobs_to_come, event.jobs.size() + event.damaged.size());
  EnterRecovered(tx, std::move(event.jobs));
  EnterDamaged(tx, event.damaged);
  if (event.part == JobsRecovered::Part::kLast) state.recovering.reset();
}

// What workers are told of their reports.
using Acknowledgements = std::map<Uuid, wire::ReportsStored>;

void EndReportedLeases(Transaction& tx, const std::vector<OutcomeRecord>& outcomes,
                       Acknowledgements& stored) {
  LeaseTable& leases = tx.state.leases;
  for (const OutcomeRecord& outcome : outcomes) {
    if (!outcome.lease) continue;
    const Uuid& worker = leases.Find(outcome.lease)->worker;
    stored[worker].leases.push_back(outcome.lease);
    tx.state.workers.CountAcknowledged(worker);
    leases.Remove(outcome.lease);
  }
}

void AcknowledgeReports(Transaction& tx, Acknowledgements stored) {
  for (auto& [id, acknowledgement] : stored) {
    const Worker* worker = tx.state.workers.Find(id);
    if (worker == nullptr || !worker->peer) continue;  // it asks again when it is back
    tx.effects.push_back(
        SendToWorker{.peer = *worker->peer, .command = std::move(acknowledgement)});
  }
}

void OnOutcomesDurable(Transaction& tx, const OutcomeCommit& commit, Acknowledgements& stored) {
  State& state = tx.state;
  tx.effects.push_back(
      Observation{OutcomesWereStored{.count = static_cast<std::uint32_t>(commit.outcomes.size()),
                                     .took = tx.now.instant - commit.made_at}});
  std::set<BatchId> changed;
  for (const OutcomeRecord& outcome : commit.outcomes) {
    Batch& batch = state.batches.At(outcome.batch);
    LF_CHECK(outcome.sequence == batch.durable + 1, "batch {}: outcome {} after {}", batch.id,
             outcome.sequence, batch.durable);
    batch.durable = outcome.sequence;
    if (outcome.settles) state.single_flight.Settle(*outcome.settles);
    changed.insert(batch.id);
  }
  EndReportedLeases(tx, commit.outcomes, stored);
  if (commit.is_piece) state.endings.piece_under_way = false;
  if (commit.cancels) {
    Batch& batch = state.batches.At(*commit.cancels);
    batch.cancelling = false;
    for (const auto& [peer, number] : std::exchange(batch.cancel_askers, {})) {
      ReplyWithBatch(tx, {.peer = peer, .number = number}, batch.id);
    }
    changed.insert(batch.id);
  }
  for (const auto& [asker, target] : commit.drains) ReplyWithConcerned(tx, asker, target);
  for (const auto& [asker, accepted] : commit.flags) Reply(tx, asker, accepted);
  for (const BatchId id : changed) {
    for (const Waiter& waiter : state.long_polls.TakeReady(id, state.batches.At(id).durable)) {
      ReplyToWaiter(tx, waiter);
    }
    RemoveIfOver(tx, id);
  }
}

void OnPersisted(Transaction& tx, const Persisted& event) {
  Acknowledgements stored;
  for (const Token token : event.tokens) {
    Commit commit = tx.state.commits.Take(token);
    if (auto* acceptance = std::get_if<AcceptanceCommit>(&commit)) {
      OnAcceptanceDurable(tx, std::move(*acceptance));
    } else {
      OnOutcomesDurable(tx, std::get<OutcomeCommit>(commit), stored);
    }
  }
  AcknowledgeReports(tx, std::move(stored));
}

void OnPersistRefused(Transaction& tx, const PersistRefused& event) {
  Commit commit = tx.state.commits.Take(event.token);
  auto* acceptance = std::get_if<AcceptanceCommit>(&commit);
  LF_CHECK(acceptance != nullptr, "token {} was to be tried until it is on disk", event.token);
  OnAcceptanceRefused(tx, std::move(*acceptance), event.failure);
}

// Runs rarely: visits every batch.
void CloseWhatWasLeftOpen(Transaction& tx) {
  State& state = tx.state;
  const Nanos idle = state.limits.open_batch_idle;
  if (tx.now.instant < state.next_look_for_open) return;
  state.next_look_for_open = tx.now.instant + idle / 8;
  for (const BatchId id : state.batches.LeftOpen(tx.now.instant - idle)) {
    state.batches.At(id).open = false;
    tx.writes.push_back(storage::BatchClosed{.batch = id});
    RemoveIfOver(tx, id);
  }
}

// Runs once a second: visits every client.
void ForgetIdleClients(Transaction& tx) {
  State& state = tx.state;
  if (tx.now.instant < state.next_look_for_idle) return;
  state.next_look_for_idle = tx.now.instant + std::chrono::seconds(1);
  state.usage.ForgetIdle(tx.now.instant);
}

void OnTick(Transaction& tx) {
  State& state = tx.state;
  const Nanos since = tx.now.instant - std::exchange(state.ticked_at, tx.now.instant);
  // After a stall of this process (a paused machine, a long event), the workers' messages from that
  // time are still unread.
  if (since > state.limits.heartbeat) state.workers.HearAll(tx.now.instant);
  LoseSilentWorkers(tx);
  ReleaseAffinities(tx);
  ExpireUnschedulable(tx);
  AnswerExpiredWaiters(tx);
  CloseWhatWasLeftOpen(tx);
  ForgetIdleClients(tx);
}

struct EventVisitor {
  Transaction& tx;

  void operator()(Recovered event) const { OnRecovered(tx, std::move(event)); }
  void operator()(JobsRecovered event) const { OnJobsRecovered(tx, std::move(event)); }
  void operator()(Submission event) const { OnSubmission(tx, std::move(event)); }
  void operator()(ClientAsked event) const { OnClientAsked(tx, std::move(event)); }
  void operator()(const ClientUnreachable& event) const { OnClientUnreachable(tx, event); }
  void operator()(WorkerSaid event) const { OnWorkerSaid(tx, std::move(event)); }
  void operator()(const WorkerUnreachable& event) const { OnWorkerUnreachable(tx, event); }
  void operator()(const Persisted& event) const { OnPersisted(tx, event); }
  void operator()(const PersistRefused& event) const { OnPersistRefused(tx, event); }
  void operator()(const KeysRevoked& event) const { OnKeysRevoked(tx, event); }
  void operator()(const Tick&) const { OnTick(tx); }
  void operator()(const DrainRequested&) const { tx.state.service = Service::kDraining; }
};

// Persists all outcomes of the event together.
void PersistOutcomes(Transaction& tx) {
  if (tx.writes.empty()) return;
  tx.commit.made_at = tx.now.instant;
  const Token token = tx.state.commits.Add(std::move(tx.commit));
  tx.effects.push_back(
      Persist{.token = token, .writes = std::move(tx.writes), .when_full = WhenFull::kRetry});
}

}  // namespace

Core::Core(Options options)
    : state_{.limits = options.limits,
             .name = std::move(options.name),
             .single_flight = SingleFlightTable(options.hash_key)} {
  state_.workers.SetRefill({.jobs = options.limits.refill_jobs,
                            .work = options.limits.refill_work,
                            .short_job = options.limits.short_job});
}

Effects Core::On(Event event, Moment now) {
  LF_CHECK(state_.epoch != 0 || std::holds_alternative<Recovered>(event),
           "the first event is Recovered");
  state_.wall.Note(now);
  Transaction tx{.state = state_, .now = now};
  const bool is_tick = std::holds_alternative<Tick>(event);
  ExpireOverdue(tx);  // first: what comes after the deadline comes too late
  std::visit(EventVisitor{tx}, std::move(event));
  EndNextPiece(tx);
  GrantLeases(tx);
  if (is_tick) RetractFromLoaded(tx);
  PersistOutcomes(tx);
  if (!tx.finished.jobs.empty()) tx.effects.push_back(Observation{std::move(tx.finished)});
  return std::move(tx.effects);
}

std::optional<Failure> Core::CheckRoomFor(const Uuid& client, const wire::SubmitJobs& submit,
                                          Instant now) const {
  if (auto why = CheckRequestRate(state_, client, now)) return why;
  if (auto why = Validate(state_, client, submit.append_to)) return why;
  std::uint64_t bytes = 0;
  for (const JobSpec& spec : submit.jobs) bytes += MemoryBytesOf(spec);
  const Batch* batch = submit.append_to ? state_.batches.Find(*submit.append_to) : nullptr;
  return CheckQuota(state_, client, batch, {.jobs = submit.jobs.size(), .bytes = bytes});
}

std::size_t Core::Leased() const {
  std::size_t leased = 0;
  for (const auto& [id, worker] : state_.workers.all()) leased += worker.running.size();
  return leased;
}

}  // namespace loopfleet::coordinator
