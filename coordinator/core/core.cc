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

// Its unfinished jobs are charged at once, whenever they come; their size is charged with them.
void RecoverBatch(Turn& turn, const storage::StoredBatch& stored) {
  Batch& batch = turn.state.batches.Add({.id = stored.batch,
                                         .client = stored.client,
                                         .open = !stored.closed && !stored.cancelled,
                                         .client_heard_at = turn.now.instant,
                                         .cancelled = stored.cancelled,
                                         .job_count = stored.job_count,
                                         .accepted = stored.job_count,
                                         .finished = stored.finished,
                                         .durable = stored.finished});
  turn.state.loads.OpenBatch(stored.client);
  ChargeJobs(turn, batch, stored.job_count - stored.finished, 0);
}

// When a job was accepted, as this run's clock would have said. Wall time is all there is to go by:
// set back meanwhile, a job has its whole time again.
Instant AcceptedAt(const Turn& turn, const Recovered::Job& job) {
  if (!job.accepted_at) return turn.now.instant;
  constexpr Nanos kLongest = std::chrono::seconds(static_cast<std::int64_t>(kLongestDeadlineS));
  return turn.now.instant - std::clamp(turn.now.wall - *job.accepted_at, Nanos{0}, kLongest);
}

void EnterRecovered(Turn& turn, std::vector<Recovered::Job> jobs) {
  for (Recovered::Job& job : jobs) {
    // What was wrong with a job from the beginning ends it, cancelled or not.
    if (IsCancelled(turn.state, job.id) && !std::holds_alternative<Failure>(job.job.admission)) {
      job.job.admission = CancelledFailure();
    }
    if (const auto* measure = std::get_if<ToMeasure>(&job.job.admission);
        measure != nullptr && job.job.spec.freshness != Freshness::kMeasureAnew) {
      turn.state.in_flight.Expect(QuestionOf(job.job.spec, *measure));
    }
    ChargeJobs(turn, turn.state.batches.At(job.id.batch), 0, MemoryBytesOf(job.job.spec));
    const Instant accepted_at = AcceptedAt(turn, job);
    EnterJob(turn, job.id, std::move(job.job), accepted_at);
  }
}

void EnterDamaged(Turn& turn, const std::vector<JobId>& damaged) {
  for (const JobId id : damaged) {
    AdmittedJob job{.admission = Failure{
                        .code = FailureCode::kStorageCorrupt,
                        .message = fmt::format("what job {} asked can no longer be read", id)}};
    EnterJob(turn, id, std::move(job), turn.now.instant);
  }
}

void OnRecovered(Turn& turn, Recovered event) {
  State& state = turn.state;
  LF_CHECK(state.epoch == 0, "recovered twice");
  state.epoch = event.epoch;
  state.next_batch = event.next_batch;
  state.leases.StartEpoch(event.epoch);
  state.ticked_at = turn.now.instant;
  for (const storage::ReferenceClock& clock : event.reference_clocks) {
    state.reference_mhz.emplace(clock.hardware_class, clock.mhz);
  }
  for (storage::WorkersDrained& drained : event.drains) {
    std::string target = drained.target;
    state.drains.emplace(std::move(target), std::move(drained));
  }
  if (!event.jobs.empty() || event.jobs_to_come > 0) {
    state.grants_from = turn.now.instant + state.limits.reattach_grace;
    state.reattach_until = turn.now.instant + state.limits.late_reattach;
  }
  if (event.jobs_to_come > 0) state.recovering.emplace().jobs_to_come = event.jobs_to_come;
  for (const storage::StoredBatch& stored : event.batches) RecoverBatch(turn, stored);
  EnterRecovered(turn, std::move(event.jobs));
  EnterDamaged(turn, event.damaged);
  for (const storage::StoredBatch& stored : event.batches) {
    RemoveIfOver(turn, stored.batch);
  }
}

void OnJobsRecovered(Turn& turn, JobsRecovered event) {
  State& state = turn.state;
  LF_CHECK(state.recovering, "nothing was to come");
  Recovering& recovering = *state.recovering;
  const bool is_early = event.part == JobsRecovered::Part::kEarly;
  const auto came_before = [&](JobId id) { return recovering.early.contains(id); };
  std::erase_if(event.jobs, [&](const Recovered::Job& job) { return came_before(job.id); });
  std::erase_if(event.damaged, came_before);
  for (const Recovered::Job& job : event.jobs) {
    if (is_early) recovering.early.insert(job.id);
  }
  recovering.jobs_to_come -=
      std::min(recovering.jobs_to_come, event.jobs.size() + event.damaged.size());
  EnterRecovered(turn, std::move(event.jobs));
  EnterDamaged(turn, event.damaged);
  if (event.part == JobsRecovered::Part::kLast) state.recovering.reset();
}

void AcknowledgeReports(Turn& turn, const std::vector<OutcomeRecord>& outcomes) {
  State& state = turn.state;
  std::map<Uuid, wire::ReportsStored> stored;
  for (const OutcomeRecord& outcome : outcomes) {
    if (!outcome.lease) continue;
    stored[state.leases.Find(outcome.lease)->worker].leases.push_back(outcome.lease);
    state.leases.Remove(outcome.lease);
  }
  for (auto& [id, acknowledgement] : stored) {
    const Worker* worker = state.workers.Find(id);
    if (worker == nullptr || !worker->peer) continue;  // it asks again when it is back
    turn.effects.push_back(
        SendToWorker{.peer = *worker->peer, .command = std::move(acknowledgement)});
  }
}

void OnOutcomesDurable(Turn& turn, const OutcomeCommit& commit) {
  State& state = turn.state;
  turn.effects.push_back(
      Observation{OutcomesWereStored{.count = static_cast<std::uint32_t>(commit.outcomes.size()),
                                     .took = turn.now.instant - commit.made_at}});
  std::set<BatchId> changed;
  for (const OutcomeRecord& outcome : commit.outcomes) {
    Batch& batch = state.batches.At(outcome.batch);
    LF_CHECK(outcome.sequence == batch.durable + 1, "batch {}: outcome {} after {}", batch.id,
             outcome.sequence, batch.durable);
    batch.durable = outcome.sequence;
    if (outcome.settles) state.in_flight.Settle(*outcome.settles);
    changed.insert(batch.id);
  }
  AcknowledgeReports(turn, commit.outcomes);
  if (commit.is_piece) state.endings.piece_under_way = false;
  if (commit.cancels) {
    Batch& batch = state.batches.At(*commit.cancels);
    batch.cancelling = false;
    for (const auto& [peer, number] : std::exchange(batch.cancel_askers, {})) {
      ReplyWithBatch(turn, {.peer = peer, .number = number}, batch.id);
    }
    changed.insert(batch.id);
  }
  for (const auto& [asker, target] : commit.drains) ReplyWithConcerned(turn, asker, target);
  for (const auto& [asker, accepted] : commit.flags) Reply(turn, asker, accepted);
  for (const BatchId id : changed) {
    for (const Waiter& waiter : state.waiters.TakeReady(id, state.batches.At(id).durable)) {
      ReplyToWaiter(turn, waiter);
    }
    RemoveIfOver(turn, id);
  }
}

void OnPersisted(Turn& turn, const Persisted& event) {
  Commit commit = turn.state.commits.Take(event.token);
  if (auto* acceptance = std::get_if<AcceptanceCommit>(&commit)) {
    OnAcceptanceDurable(turn, std::move(*acceptance));
  } else {
    OnOutcomesDurable(turn, std::get<OutcomeCommit>(commit));
  }
}

void OnPersistRefused(Turn& turn, const PersistRefused& event) {
  Commit commit = turn.state.commits.Take(event.token);
  auto* acceptance = std::get_if<AcceptanceCommit>(&commit);
  LF_CHECK(acceptance != nullptr, "token {} was to be tried until it is on disk", event.token);
  OnAcceptanceRefused(turn, std::move(*acceptance), event.failure);
}

// Now and then: it takes a look at every batch.
void CloseWhatWasLeftOpen(Turn& turn) {
  State& state = turn.state;
  const Nanos idle = state.limits.open_batch_idle;
  if (turn.now.instant < state.next_look_for_open) return;
  state.next_look_for_open = turn.now.instant + idle / 8;
  for (const BatchId id : state.batches.LeftOpen(turn.now.instant - idle)) {
    state.batches.At(id).open = false;
    turn.writes.push_back(storage::BatchClosed{.batch = id});
    RemoveIfOver(turn, id);
  }
}

// Once a second: it takes a look at every client.
void ForgetIdleClients(Turn& turn) {
  State& state = turn.state;
  if (turn.now.instant < state.next_look_for_idle) return;
  state.next_look_for_idle = turn.now.instant + std::chrono::seconds(1);
  state.loads.ForgetIdle(turn.now.instant);
}

void OnTick(Turn& turn) {
  State& state = turn.state;
  const Nanos since = turn.now.instant - std::exchange(state.ticked_at, turn.now.instant);
  // After a standstill of our own (a paused machine, a long turn), what the workers said meanwhile
  // is still unread.
  if (since > state.limits.heartbeat) state.workers.HearAll(turn.now.instant);
  LoseSilentWorkers(turn);
  RetractFromLoaded(turn);
  ReleaseAffinities(turn);
  ExpireUnserved(turn);
  AnswerExpiredWaiters(turn);
  CloseWhatWasLeftOpen(turn);
  ForgetIdleClients(turn);
}

struct EventVisitor {
  Turn& turn;

  void operator()(Recovered event) const { OnRecovered(turn, std::move(event)); }
  void operator()(JobsRecovered event) const { OnJobsRecovered(turn, std::move(event)); }
  void operator()(Submission event) const { OnSubmission(turn, std::move(event)); }
  void operator()(ClientAsked event) const { OnClientAsked(turn, std::move(event)); }
  void operator()(const ClientUnreachable& event) const { OnClientUnreachable(turn, event); }
  void operator()(WorkerSaid event) const { OnWorkerSaid(turn, std::move(event)); }
  void operator()(const WorkerUnreachable& event) const { OnWorkerUnreachable(turn, event); }
  void operator()(const Persisted& event) const { OnPersisted(turn, event); }
  void operator()(const PersistRefused& event) const { OnPersistRefused(turn, event); }
  void operator()(const KeysRevoked& event) const { OnKeysRevoked(turn, event); }
  void operator()(const Tick&) const { OnTick(turn); }
  void operator()(const DrainRequested&) const { turn.state.service = Service::kDraining; }
};

// All outcomes of the turn go to disk together.
void PersistOutcomes(Turn& turn) {
  if (turn.writes.empty()) return;
  turn.commit.made_at = turn.now.instant;
  const Token token = turn.state.commits.Add(std::move(turn.commit));
  turn.effects.push_back(Persist{
      .token = token, .writes = std::move(turn.writes), .when_full = WhenFull::kKeepTrying});
}

}  // namespace

Core::Core(Options options) : state_{.limits = options.limits, .name = std::move(options.name)} {
  state_.workers.SetRefill({.jobs = options.limits.refill_jobs,
                            .work = options.limits.refill_work,
                            .short_job = options.limits.short_job});
}

Effects Core::On(Event event, Moment now) {
  LF_CHECK(state_.epoch != 0 || std::holds_alternative<Recovered>(event),
           "the first event is Recovered");
  state_.wall.Note(now);
  Turn turn{.state = state_, .now = now};
  ExpireOverdue(turn);  // before: what comes after the deadline comes too late
  std::visit(EventVisitor{turn}, std::move(event));
  EndNextPiece(turn);
  GrantLeases(turn);
  PersistOutcomes(turn);
  if (!turn.finished.jobs.empty()) turn.effects.push_back(Observation{std::move(turn.finished)});
  return std::move(turn.effects);
}

std::optional<Failure> Core::WhyNoRoomFor(const Uuid& client, const wire::SubmitJobs& submit,
                                          Instant now) const {
  if (auto why = WhyTooOften(state_, client, now)) return why;
  if (auto why = WhyNotTaken(state_, client, submit.append_to)) return why;
  std::uint64_t bytes = 0;
  for (const JobSpec& spec : submit.jobs) bytes += MemoryBytesOf(spec);
  const Batch* batch = submit.append_to ? state_.batches.Find(*submit.append_to) : nullptr;
  return WhyNoRoom(state_, client, batch, {.jobs = submit.jobs.size(), .bytes = bytes});
}

std::size_t Core::Leased() const {
  std::size_t leased = 0;
  for (const auto& [id, worker] : state_.workers.all()) leased += worker.running.size();
  return leased;
}

}  // namespace loopfleet::coordinator
