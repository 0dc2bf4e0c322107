#include "coordinator/core/dispatch/job_lifecycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/state/client_charge.h"

namespace loopfleet::coordinator {
namespace {

// An outcome, except for what its batch adds.
struct Concluded {
  JobId id;
  std::uint32_t attempts = 0;
  Ending&& ending;  // an evaluation is large: it is moved once
  std::optional<Question> settles;
  std::optional<ProgramKey> program = std::nullopt;
  std::uint64_t cut_above_ns = 0;
  std::vector<storage::Witness> agreeing;
};

// Who gave the same failure before under the same conditions.
std::vector<storage::Witness> AgreeingWith(const Job& job, const Evaluation& evaluation) {
  std::vector<storage::Witness> agreeing;
  if (evaluation.ok() || !evaluation.conditions) return agreeing;
  for (const FailedAttempt& attempt : job.failed_attempts) {
    if (attempt.code != evaluation.failure().code || attempt.in_doubt) continue;
    if (IsOfKind(*evaluation.conditions, attempt.kind)) agreeing.push_back(attempt.witness);
  }
  return agreeing;
}

// Outcomes are about to be stored with the clock of this class.
void KeepClock(State& state, const Evaluation& evaluation) {
  if (!evaluation.conditions) return;
  const auto clock = state.reference_clocks.find(evaluation.conditions->hardware.hardware_class);
  if (clock != state.reference_clocks.end()) clock->second.has_outcomes = true;
}

void MakeOutcome(Transaction& tx, Concluded concluded) {
  Batch& batch = tx.state.batches.At(concluded.id.batch);
  DischargeJob(tx, batch);
  Ending& ending = concluded.ending;
  // A measured job also waited inside its worker; the report includes that time.
  Nanos& queue = ending.evaluation.stages[Stage::kQueue];
  queue = (ending.source == OutcomeSource::kMeasured ? queue : Nanos{0}) + ending.queued;
  const std::uint64_t sequence = ++batch.finished;
  // Until an answer is on disk, equal jobs get it from a copy of its own (FinishJob).
  const std::uint64_t copies = concluded.settles ? 2 : 1;
  tx.commit.bytes += kOutcomeBytes + copies * LargePartsOf(ending.evaluation);
  tx.finished.jobs.push_back({.failure = ending.evaluation.ok()
                                             ? std::nullopt
                                             : std::optional(ending.evaluation.failure().code),
                              .source = ending.source,
                              .stages = ending.evaluation.stages});
  tx.commit.outcomes.push_back({.batch = batch.id,
                                .sequence = sequence,
                                .lease = ending.lease,
                                .settles = std::move(concluded.settles)});
  KeepClock(tx.state, ending.evaluation);
  const bool is_doubted_figure = !ending.doubt.empty() && ending.evaluation.is_timed();
  // The accepted job has benchmark, actions and tag; storage has them already (storage/record.h).
  auto& write = std::get<storage::JobFinished>(
      tx.writes.emplace_back(std::in_place_type<storage::JobFinished>));
  write.program = concluded.program;
  write.cut_above_ns = concluded.cut_above_ns;
  write.in_doubt = !ending.doubt.empty();
  write.agreeing = std::move(concluded.agreeing);
  Outcome& outcome = write.outcome;
  outcome.job = concluded.id;
  outcome.sequence = sequence;
  outcome.source = ending.source;
  outcome.attempts = concluded.attempts;
  outcome.worker = std::move(ending.worker);
  outcome.finished_at = tx.now.wall;
  outcome.evaluation = std::move(ending.evaluation);
  if (is_doubted_figure) {
    tx.writes.push_back(storage::ResultDoubted{
        .job = concluded.id, .flagged_at = tx.now.wall, .reason = std::move(ending.doubt)});
  }
}

// A job answered with another job's result. All such jobs share the result object, in memory and on
// the way to disk.
struct Answered {
  JobId id;
  OutcomeSource source = OutcomeSource::kStored;
  std::uint32_t attempts = 0;
  Nanos queued{0};
};

void MakeSharedOutcome(Transaction& tx, const Answered& answered, storage::StoredAnswer answer) {
  Batch& batch = tx.state.batches.At(answered.id.batch);
  DischargeJob(tx, batch);
  const std::uint64_t sequence = ++batch.finished;
  const Evaluation& evaluation = answer->evaluation;
  FinishedJob finished{
      .failure = evaluation.ok() ? std::nullopt : std::optional(evaluation.failure().code),
      .source = answered.source,
      .stages = evaluation.stages};
  finished.stages[Stage::kQueue] = answered.queued;
  tx.finished.jobs.push_back(std::move(finished));
  tx.commit.outcomes.push_back({.batch = batch.id, .sequence = sequence});
  tx.commit.bytes += kOutcomeBytes;  // the answer is shared
  auto* last = tx.writes.empty() ? nullptr : std::get_if<storage::JobsAnswered>(&tx.writes.back());
  if (last == nullptr || last->source != answered.source) {
    last = &std::get<storage::JobsAnswered>(tx.writes.emplace_back(
        storage::JobsAnswered{.source = answered.source, .finished_at = tx.now.wall}));
  }
  last->jobs.push_back({.job = answered.id,
                        .sequence = sequence,
                        .attempts = answered.attempts,
                        .queued = answered.queued,
                        .answer = std::move(answer)});
}

// Removes the job from the JobTable and the DeadlineTable.
Job TakeJob(State& state, JobId id) {
  Job job = state.jobs.Take(id);
  if (job.expires_at != Instant::max()) state.deadlines.Remove(id, job.expires_at);
  return job;
}
Job& AddJob(State& state, Job&& entering) {
  Job& job = state.jobs.Add(std::move(entering));
  if (job.expires_at != Instant::max()) state.deadlines.Add(job.id, job.expires_at);
  return job;
}

// A sharing job ends on its own account: the next in line leads.
void LeaveFlight(Transaction& tx, const Job& job, Verdict verdict) {
  const auto successor = tx.state.single_flight.Leave(QuestionOf(job), job.id);
  if (!successor) return;
  Job& next = tx.state.jobs.At(*successor);
  if (std::holds_alternative<Queued>(next.progress)) return;  // already in line
  if (verdict == Verdict::kNobodyCame) {
    PutInQueue(tx, next);  // at the front it would delay the expiry of jobs that waited longer
  } else {
    PutInFront(tx, next);
  }
}

void EnterToMeasure(Transaction& tx, Job&& entering) {
  State& state = tx.state;
  if (entering.sharing == Sharing::kAlone) {
    PutInQueue(tx, AddJob(state, std::move(entering)));
    return;
  }
  const Question question = QuestionOf(entering);
  const auto joined = state.single_flight.Join(question, entering.id);
  if (const auto* answer = std::get_if<storage::StoredAnswer>(&joined)) {
    MakeSharedOutcome(tx,
                      {.id = entering.id,
                       .source = OutcomeSource::kCoalesced,
                       .queued = tx.now.instant - entering.accepted_at},
                      *answer);
  } else {
    Job& job = AddJob(state, std::move(entering));
    if (std::get<SingleFlightTable::Role>(joined) == SingleFlightTable::Role::kLeads ||
        state.single_flight.NeedsToStand(question, LinePlaceOf(state, job))) {
      PutInQueue(tx, job);
    } else {
      job.progress = Following{};
    }
  }
  state.single_flight.Forget(question);
}

Instant ExpiryOf(const JobSpec& spec, Instant accepted_at) {
  if (spec.deadline_s == 0) return Instant::max();
  return accepted_at +
         std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(spec.deadline_s));
}

// Worker time.
Nanos SpentOn(const StageDurations& stages) {
  return stages[Stage::kReplay] + stages[Stage::kCompile] + stages[Stage::kVerify] +
         stages[Stage::kMeasure];
}

}  // namespace

wire::Lease GrantLease(Transaction& tx, Worker& worker, JobId id) {
  Job& job = tx.state.jobs.At(id);
  if (job.sharing == Sharing::kShares) LeadFlight(tx, job);
  const LeaseRecord& lease = tx.state.leases.Grant(id, worker.id(), tx.now.instant);
  tx.state.workers.AddRunning(worker, lease.id);
  job.progress = Leased{lease.id};
  job.counted.push_back(lease.id);
  return {.lease = lease.id, .job = id, .attempt = job.attempts(), .spec = job.spec};
}

Failure ExpiredFailure(const JobSpec& spec) {
  return {.code = FailureCode::kExpired,
          .message = fmt::format("not finished {} s after it was accepted", spec.deadline_s)};
}

Ending FailedBy(Failure failure, Verdict verdict) {
  Ending ending{.verdict = verdict};
  ending.evaluation.verdict = std::move(failure);
  return ending;
}

void EnterJob(Transaction& tx, JobId id, ResolvedJob&& job, Instant accepted_at) {
  const Nanos waited = tx.now.instant - accepted_at;
  const Instant expires_at = ExpiryOf(job.spec, accepted_at);
  const auto* measure = std::get_if<ResolvedTask>(&job.resolution);
  const bool shares = measure != nullptr && job.spec.freshness != Freshness::kMeasureAgain;
  if (auto* failure = std::get_if<Failure>(&job.resolution)) {
    Ending ending = FailedBy(std::move(*failure), Verdict::kAboutThisJob);
    MakeOutcome(tx, {.id = id, .ending = std::move(ending)});
  } else if (expires_at <= tx.now.instant) {  // it expired on its way to disk
    if (shares) tx.state.single_flight.Forget(QuestionOf(job.spec, *measure));
    MakeOutcome(tx,
                {.id = id, .ending = FailedBy(ExpiredFailure(job.spec), Verdict::kAboutThisJob)});
  } else if (auto* stored = std::get_if<storage::StoredAnswer>(&job.resolution)) {
    MakeSharedOutcome(tx, {.id = id, .queued = waited}, std::move(*stored));
  } else {
    EnterToMeasure(tx, {.id = id,
                        .spec = std::move(job.spec),
                        .subject = measure->subject,
                        .program = measure->program,
                        .placement = measure->placement,
                        .flop_count = measure->flop_count,
                        .sharing = shares ? Sharing::kShares : Sharing::kAlone,
                        .accepted_at = accepted_at,
                        .expires_at = expires_at});
  }
}

Job FinishJob(Transaction& tx, JobId id, Ending ending) {
  State& state = tx.state;
  Job job = TakeJob(state, id);
  if (std::holds_alternative<Queued>(job.progress)) LeaveQueue(tx, job);
  if (std::holds_alternative<Retrying>(job.progress)) LeaveRetries(tx, job);
  if (!std::holds_alternative<Leased>(job.progress)) {
    ending.queued = tx.now.instant - job.accepted_at;
  }
  if (!ending.evaluation.subject) ending.evaluation.subject = job.subject;
  if (ending.lease) {
    state.ready.Took(state.batches.At(id.batch).client, SpentOn(ending.evaluation.stages));
  }

  std::optional<Question> settles;
  if (job.sharing == Sharing::kShares && ending.verdict == Verdict::kAboutTheTree) {
    LeadFlight(tx, job);  // it may have no worker yet: nothing may stand in line for it any more
    settles = QuestionOf(job);
    state.single_flight.Answer(*settles,
                               std::make_shared<const storage::StoredResult>(storage::StoredResult{
                                   .evaluation = ending.evaluation, .worker = ending.worker}));
  } else if (job.sharing == Sharing::kShares) {
    LeaveFlight(tx, job, ending.verdict);
  }
  std::vector<storage::Witness> agreeing = AgreeingWith(job, ending.evaluation);
  MakeOutcome(tx, {.id = id,
                   .attempts = job.attempts(),
                   .ending = std::move(ending),
                   .settles = std::move(settles),
                   .program = job.program,
                   .cut_above_ns = job.spec.cut_above_ns,
                   .agreeing = std::move(agreeing)});
  return job;
}

void ShareAnswer(Transaction& tx, JobId follower, storage::StoredAnswer answer) {
  const Job job = TakeJob(tx.state, follower);
  MakeSharedOutcome(tx,
                    {.id = follower,
                     .source = OutcomeSource::kCoalesced,
                     .attempts = job.attempts(),
                     .queued = tx.now.instant - job.accepted_at},
                    std::move(answer));
}

void EndWherever(Transaction& tx, JobId id, Failure failure, Revocations& revoked) {
  State& state = tx.state;
  if (const auto* leased = std::get_if<Leased>(&state.jobs.At(id).progress)) {
    const LeaseId lease = leased->lease;
    revoked[state.leases.Find(lease)->worker].leases.push_back(lease);
    EndLease(tx, lease);
  }
  FinishJob(tx, id, FailedBy(std::move(failure), Verdict::kAboutThisJob));
}

void SendRevocations(Transaction& tx, Revocations revoked) {
  for (auto& [id, revoke] : revoked) {
    const Worker* worker = tx.state.workers.Find(id);
    if (!worker->peer) continue;  // told when it reconnects
    tx.effects.push_back(SendToWorker{.peer = *worker->peer, .command = std::move(revoke)});
  }
}

void EndLease(Transaction& tx, LeaseId id) {
  const LeaseRecord* lease = tx.state.leases.Find(id);
  LF_CHECK(lease != nullptr && lease->stage == LeaseStage::kRunning, "lease {} is not running", id);
  tx.state.workers.RemoveRunning(*tx.state.workers.Find(lease->worker), id);
  tx.state.leases.Remove(id);
}

}  // namespace loopfleet::coordinator
