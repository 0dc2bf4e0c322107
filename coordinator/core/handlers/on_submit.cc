#include "coordinator/core/handlers/on_submit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "coordinator/core/dispatch/bulk_completion.h"
#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/handlers/client_quota.h"
#include "coordinator/core/state/client_charge.h"
#include "coordinator/core/state/client_reply.h"

namespace loopfleet::coordinator {
namespace {

Asker AskerOf(const Submission& submission) {
  return {.peer = submission.peer, .number = submission.number};
}

// Keeps the questions of jobs on their way to disk in flight.
void ExpectAnswers(Transaction& tx, const std::vector<ResolvedJob>& jobs) {
  for (const ResolvedJob& job : jobs) {
    const auto* measure = std::get_if<ResolvedTask>(&job.resolution);
    if (measure == nullptr || job.spec.freshness == Freshness::kMeasureAgain) continue;
    tx.state.single_flight.Expect(QuestionOf(job.spec, *measure));
  }
  tx.state.arriving_jobs += jobs.size();
}

void ForgetAnswers(Transaction& tx, const std::vector<ResolvedJob>& jobs) {
  for (const ResolvedJob& job : jobs) {
    const auto* measure = std::get_if<ResolvedTask>(&job.resolution);
    if (measure == nullptr || job.spec.freshness == Freshness::kMeasureAgain) continue;
    tx.state.single_flight.Forget(QuestionOf(job.spec, *measure));
  }
  tx.state.arriving_jobs -= jobs.size();
}

// A repeated request gets its first answer: now, or once that is on disk.
enum class Repeat : bool { kNo, kDealtWith };
Repeat AnswerRepeat(Transaction& tx, const RequestKey& key, const Submission& submission) {
  const Asker asker = AskerOf(submission);
  PendingRequest* pending = tx.state.clients.FindPending(key);
  if (pending == nullptr && !submission.seen) return Repeat::kNo;
  const std::string& digest = pending ? pending->digest : submission.seen->request_digest;
  if (digest != submission.digest) {
    Refuse(tx, asker, FailureCode::kDuplicateIdConflict,
           fmt::format("request {} was sent before with other content", key.request.ToString()));
  } else if (pending != nullptr) {
    pending->asker = asker;
  } else {
    Reply(tx, asker,
          wire::Accepted{.batch = submission.seen->batch,
                         .first_index = submission.seen->first_index,
                         .job_count = submission.seen->job_count});
  }
  return Repeat::kDealtWith;
}

// Each distinct demand is compared with each shape of worker, so the demands of one sort are
// bounded. Beyond the bound only a client with more than an equal share is refused, so the demands
// of some keep no other client out. So k clients can exceed it by the factor 1 + ln k, which has a
// bound, too. `before`: the demands before the client's job entered.
std::optional<Failure> WhyOverItsShare(const State& state, const Uuid& client,
                                       const ReadyQueue::DemandCounts& before,
                                       std::size_t ReadyQueue::DemandCounts::* sort,
                                       std::size_t most) {
  constexpr std::size_t kMostTimes = 8;
  const std::size_t all = state.ready.demands().*sort;
  if (all <= std::max(before.*sort, most)) return std::nullopt;
  const std::size_t share = std::max<std::size_t>(most / state.ready.clients(), 1);
  if (state.ready.DemandsOf(client).*sort <= share && all <= kMostTimes * most) {
    return std::nullopt;
  }
  return Failure{
      .code = FailureCode::kQuotaExceeded,
      .message = fmt::format("jobs of this client wait with {} combinations of device, threads and "
                             "labels, its share: ask for fewer different ones at a time",
                             share)};
}

// Why the job that has just entered may not wait.
std::optional<Failure> WhyTooManyDemands(const State& state, const Uuid& client,
                                         const ReadyQueue::DemandCounts& before) {
  using Counts = ReadyQueue::DemandCounts;
  // A worker needs few bound demands, however many affinities are bound to it.
  constexpr std::size_t kForEachWorker = 4;
  const std::size_t most = state.limits.max_demands;
  if (auto why = WhyOverItsShare(state, client, before, &Counts::open, most)) return why;
  return WhyOverItsShare(state, client, before, &Counts::bound,
                         most + kForEachWorker * state.workers.size());
}

void StartAccepting(Transaction& tx, Batch& batch, Submission submission) {
  const bool first = batch.job_count == 0 && batch.accepting == Accepting::kFirstMessage;
  storage::JobsAccepted write{.batch = batch.id,
                              .client = batch.client,
                              .request_id = submission.request_id,
                              .request_digest = std::move(submission.digest),
                              .new_batch = first,
                              .closes_batch = submission.end == wire::BatchEnd::kComplete,
                              .first_index = batch.job_count,
                              .accepted_at = tx.now.wall};
  write.jobs.reserve(submission.jobs.size());
  write.replayed.reserve(submission.jobs.size());
  const std::uint64_t bytes = MemoryBytesOf(submission.jobs);
  for (ResolvedJob& job : submission.jobs) {
    if (std::holds_alternative<storage::StoredAnswer>(job.resolution)) {
      const double deadline_s = job.spec.deadline_s;
      write.jobs.push_back(std::exchange(job.spec, {.deadline_s = deadline_s}));
    } else {
      write.jobs.push_back(job.spec);
    }
    const auto* measure = std::get_if<ResolvedTask>(&job.resolution);
    write.replayed.push_back(measure == nullptr ? std::nullopt
                                                : std::optional(storage::ReplayResult{
                                                      measure->subject, measure->placement}));
  }
  if (!first) batch.accepting = Accepting::kAppend;
  const std::uint32_t first_index = batch.job_count;
  batch.job_count += static_cast<std::uint32_t>(submission.jobs.size());
  const Token token = tx.state.commits.Add(
      AcceptanceCommit{.request = {.client = batch.client, .request = submission.request_id},
                       .batch = batch.id,
                       .first_index = first_index,
                       .end = submission.end,
                       .jobs = std::move(submission.jobs),
                       .bytes = bytes,
                       .arrived_at = tx.now.instant});
  Persist persist{.token = token, .when_full = WhenFull::kRefuse};
  persist.writes.push_back(std::move(write));
  tx.effects.push_back(std::move(persist));
}

void RefuseHeld(Transaction& tx, Batch& batch, const Submission& held) {
  ForgetAnswers(tx, held.jobs);
  DischargeJobs(tx, batch, held.jobs.size(), MemoryBytesOf(held.jobs));
  const PendingRequest pending =
      tx.state.clients.TakePending({.client = batch.client, .request = held.request_id});
  Refuse(tx, pending.asker, FailureCode::kNotFound,
         fmt::format("batch {} takes no more jobs", batch.id));
}

// The message on its way to disk is done: starts the batch's next one.
void AcceptNextHeld(Transaction& tx, Batch& batch) {
  while (batch.accepting == Accepting::kNothing && !batch.held.empty()) {
    Submission next = std::move(batch.held.front());
    batch.held.pop_front();
    if (batch.open) {
      StartAccepting(tx, batch, std::move(next));
    } else {
      RefuseHeld(tx, batch, next);
    }
  }
}

}  // namespace

void OnSubmission(Transaction& tx, Submission submission) {
  State& state = tx.state;
  const Asker asker = AskerOf(submission);
  const auto client = state.clients.Hear(submission.peer, submission.key, tx.now.instant);
  if (!client) {
    return Refuse(tx, asker, FailureCode::kUnauthenticated, "say hello first");
  }
  if (ExceedsRequestRate(tx, asker, *client)) return;
  const RequestKey key{.client = *client, .request = submission.request_id};
  if (AnswerRepeat(tx, key, submission) == Repeat::kDealtWith) return;
  if (auto why = Validate(state, *client, submission.append_to)) {
    return Refuse(tx, asker, why->code, std::move(why->message));
  }
  Batch* batch = submission.append_to ? state.batches.Find(*submission.append_to) : nullptr;
  const std::uint64_t bytes = MemoryBytesOf(submission.jobs);
  auto no_room = submission.no_room;
  if (!no_room) {
    no_room = CheckQuota(state, *client, batch, {.jobs = submission.jobs.size(), .bytes = bytes});
  }
  if (no_room) return Refuse(tx, asker, no_room->code, std::move(no_room->message));
  state.clients.AddPending(key, {.digest = submission.digest, .asker = asker});
  ExpectAnswers(tx, submission.jobs);
  BindStored(tx, submission.jobs);
  const bool is_new = batch == nullptr;
  if (is_new) {
    batch = &state.batches.Add({.id = BatchId{state.next_batch++},
                                .client = *client,
                                .accepting = Accepting::kFirstMessage});
    state.usage.OpenBatch(*client);
  }
  batch->client_heard_at = tx.now.instant;
  ChargeJobs(tx, *batch, submission.jobs.size(), bytes);
  if (!is_new && batch->accepting != Accepting::kNothing) {
    batch->held.push_back(std::move(submission));
    return;
  }
  StartAccepting(tx, *batch, std::move(submission));
}

void SubmitInternalBatch(Transaction& tx, std::vector<ResolvedJob> jobs) {
  State& state = tx.state;
  const Arriving arriving{.jobs = jobs.size(), .bytes = MemoryBytesOf(jobs)};
  if (jobs.empty() || CheckCapacity(state, nullptr, arriving)) return;
  Batch& batch = state.batches.Add(
      {.id = BatchId{state.next_batch++}, .client = {}, .accepting = Accepting::kFirstMessage});
  Submission submission{.jobs = std::move(jobs)};
  state.usage.OpenBatch(batch.client);
  ChargeJobs(tx, batch, arriving.jobs, arriving.bytes);
  // A unique request: no client has the nil id, and a batch id is never reused.
  std::memcpy(submission.request_id.bytes.data(), &batch.id.value, sizeof batch.id.value);
  submission.digest = "own";
  state.clients.AddPending({.client = batch.client, .request = submission.request_id},
                           {.digest = submission.digest, .asker = {}});
  ExpectAnswers(tx, submission.jobs);
  StartAccepting(tx, batch, std::move(submission));
}

void OnAcceptanceDurable(Transaction& tx, AcceptanceCommit commit) {
  State& state = tx.state;
  Batch& batch = state.batches.At(commit.batch);
  const auto count = static_cast<std::uint32_t>(commit.jobs.size());
  batch.accepting = Accepting::kNothing;
  batch.accepted += count;
  if (commit.end == wire::BatchEnd::kComplete) batch.open = false;
  Reply(tx, state.clients.TakePending(commit.request).asker,
        wire::Accepted{.batch = batch.id, .first_index = commit.first_index, .job_count = count});
  tx.effects.push_back(Observation{
      JobsWereAccepted{.count = count,
                       .first_index = commit.first_index,
                       .batch = IsInternal(batch) ? std::nullopt : std::optional(batch.id),
                       .batch_jobs = batch.accepted,
                       .end = commit.end}});
  state.arriving_jobs -= count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const JobId id{.batch = batch.id, .index = commit.first_index + i};
    const ReadyQueue::DemandCounts before = state.ready.demands();
    EnterJob(tx, id, std::move(commit.jobs[i]), commit.arrived_at);
    if (auto why = WhyTooManyDemands(state, batch.client, before)) {
      FinishJob(tx, id, FailedBy(*std::move(why), Verdict::kAboutThisJob));
    }
  }
  if (batch.cancelled) CancelArrived(tx, batch, commit.first_index);
  AcceptNextHeld(tx, batch);
  RemoveIfOver(tx, commit.batch);
}

void OnAcceptanceRefused(Transaction& tx, AcceptanceCommit commit, const Failure& failure) {
  State& state = tx.state;
  Batch& batch = state.batches.At(commit.batch);
  batch.job_count -= static_cast<std::uint32_t>(commit.jobs.size());
  ForgetAnswers(tx, commit.jobs);
  DischargeJobs(tx, batch, commit.jobs.size(), commit.bytes);
  const Asker asker = state.clients.TakePending(commit.request).asker;
  Refuse(tx, asker, failure.code, failure.message);
  if (std::exchange(batch.accepting, Accepting::kNothing) == Accepting::kFirstMessage) {
    state.usage.CloseBatch(batch.client);
    state.batches.Remove(commit.batch);  // no client knows of it, so nothing can be held
    return;
  }
  AcceptNextHeld(tx, batch);
  RemoveIfOver(tx, commit.batch);
}

}  // namespace loopfleet::coordinator
