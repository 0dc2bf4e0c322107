#include "coordinator/core/dispatch/job_lifecycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "coordinator/core/dispatch/expiry.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/dispatch/retry.h"
#include "coordinator/core/state/client_charge.h"

namespace loopfleet::coordinator {
namespace {

// Everything an outcome is made of, but for what its batch adds.
struct Concluded {
  JobId id;
  std::uint32_t attempts = 0;
  Ending ending;
  std::optional<Question> settles;
  std::uint64_t cut_above_ns = 0;
};

void MakeOutcome(Turn& turn, Concluded concluded) {
  Batch& batch = turn.state.batches.At(concluded.id.batch);
  DischargeJob(turn, batch);
  Ending& ending = concluded.ending;
  // A measured job also waited inside its worker, which is in the report.
  Nanos& queue = ending.evaluation.stages[Stage::kQueue];
  queue = (ending.source == OutcomeSource::kMeasured ? queue : Nanos{0}) + ending.queued;
  const std::uint64_t sequence = ++batch.finished;
  turn.finished.jobs.push_back({.failure = ending.evaluation.ok()
                                               ? std::nullopt
                                               : std::optional(ending.evaluation.failure().code),
                                .source = ending.source,
                                .stages = ending.evaluation.stages});
  turn.commit.outcomes.push_back({.batch = batch.id,
                                  .sequence = sequence,
                                  .lease = ending.lease,
                                  .settles = std::move(concluded.settles)});
  const bool is_doubted_figure = !ending.doubt.empty() && ending.evaluation.ok();
  // Benchmark, actions and tag are the accepted job's: storage has them (storage/record.h).
  turn.writes.push_back(
      storage::JobFinished{.outcome = {.job = concluded.id,
                                       .sequence = sequence,
                                       .source = ending.source,
                                       .attempts = concluded.attempts,
                                       .worker = std::move(ending.worker),
                                       .finished_at = turn.now.wall,
                                       .evaluation = std::move(ending.evaluation)},
                           .cut_above_ns = concluded.cut_above_ns,
                           .in_doubt = !ending.doubt.empty()});
  if (is_doubted_figure) {
    turn.writes.push_back(storage::ResultDoubted{.job = concluded.id,
                                                 .flagged_at = turn.now.wall,
                                                 .reason = std::move(ending.doubt)});
  }
}

// The job has the answer of another one: all who have it share it, in memory and on its way to
// disk.
struct Answered {
  JobId id;
  OutcomeSource source = OutcomeSource::kStored;
  std::uint32_t attempts = 0;
  Nanos queued{0};
};

void MakeSharedOutcome(Turn& turn, const Answered& answered, storage::StoredAnswer answer) {
  Batch& batch = turn.state.batches.At(answered.id.batch);
  DischargeJob(turn, batch);
  const std::uint64_t sequence = ++batch.finished;
  const Evaluation& evaluation = answer->evaluation;
  FinishedJob finished{
      .failure = evaluation.ok() ? std::nullopt : std::optional(evaluation.failure().code),
      .source = answered.source,
      .stages = evaluation.stages};
  finished.stages[Stage::kQueue] = answered.queued;
  turn.finished.jobs.push_back(std::move(finished));
  turn.commit.outcomes.push_back({.batch = batch.id, .sequence = sequence});
  auto* last =
      turn.writes.empty() ? nullptr : std::get_if<storage::JobsAnswered>(&turn.writes.back());
  if (last == nullptr || last->source != answered.source) {
    last = &std::get<storage::JobsAnswered>(turn.writes.emplace_back(
        storage::JobsAnswered{.source = answered.source, .finished_at = turn.now.wall}));
  }
  last->jobs.push_back({.job = answered.id,
                        .sequence = sequence,
                        .attempts = answered.attempts,
                        .queued = answered.queued,
                        .answer = std::move(answer)});
}

// Out of the JobTable, and of what goes with it.
Job TakeJob(State& state, JobId id) {
  Job job = state.jobs.Take(id);
  if (job.expires_at != Instant::max()) state.deadlines.Remove(id, job.expires_at);
  return job;
}
Job& AddJob(State& state, Job entering) {
  Job& job = state.jobs.Add(std::move(entering));
  if (job.expires_at != Instant::max()) state.deadlines.Add(job.id, job.expires_at);
  return job;
}

// The job, which shares, ends on its own account.
void LeaveFlight(Turn& turn, const Job& job, Verdict verdict) {
  const auto successor = turn.state.in_flight.Leave(QuestionOf(job), job.id);
  if (!successor) return;
  Job& next = turn.state.jobs.At(*successor);
  if (std::holds_alternative<Queued>(next.progress)) return;  // it stands in line already
  if (verdict == Verdict::kNobodyCame) {
    PutInQueue(turn, next);  // in front, it would hold up the expiry of those who waited longer
  } else {
    PutInFront(turn, next);
  }
}

void EnterToMeasure(Turn& turn, Job entering) {
  State& state = turn.state;
  if (entering.sharing == Sharing::kAlone) {
    PutInQueue(turn, AddJob(state, std::move(entering)));
    return;
  }
  const Question question = QuestionOf(entering);
  const auto joined = state.in_flight.Join(question, entering.id);
  if (const auto* answer = std::get_if<storage::StoredAnswer>(&joined)) {
    MakeSharedOutcome(turn,
                      {.id = entering.id,
                       .source = OutcomeSource::kCoalesced,
                       .queued = turn.now.instant - entering.accepted_at},
                      *answer);
  } else {
    Job& job = AddJob(state, std::move(entering));
    if (std::get<InFlightTable::Role>(joined) == InFlightTable::Role::kLeads ||
        state.in_flight.NeedsToStand(question, LinePlaceOf(state, job))) {
      PutInQueue(turn, job);
    } else {
      job.progress = Following{};
    }
  }
  state.in_flight.Forget(question);
}

Instant ExpiryOf(const JobSpec& spec, Instant accepted_at) {
  if (spec.deadline_s == 0) return Instant::max();
  return accepted_at +
         std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(spec.deadline_s));
}

// Of the worker's time.
Nanos SpentOn(const StageDurations& stages) {
  return stages[Stage::kReplay] + stages[Stage::kCompile] + stages[Stage::kVerify] +
         stages[Stage::kMeasure];
}

bool MayGrant(const Turn& turn) {
  const State& state = turn.state;
  return state.service == Service::kServing && turn.now.instant >= state.grants_from &&
         state.commits.undurable_outcomes() + turn.commit.outcomes.size() <
             state.limits.max_undurable_outcomes;
}

// Not while jobs that are over are in the way.
bool AllWasSeen(const Turn& turn) {
  const State& state = turn.state;
  return !state.deadlines.Due(turn.now.instant) && state.endings.cancelled.empty() &&
         turn.commit.outcomes.size() < state.limits.max_endings_per_turn;
}

// Longest idle first, and nobody gets a second job before everybody with credit got a first: who
// was given one comes last again.
void GrantTo(Turn& turn, DeviceKind device) {
  State& state = turn.state;
  Offered& offered = state.offered[static_cast<std::size_t>(device)];
  if (offered.changes != state.ready.changes()) offered.rank = 0;
  std::map<Uuid, wire::Leases> granted;
  while (state.ready.size() > 0) {
    Worker* worker = state.workers.NextCandidate(device, offered.rank);
    if (worker == nullptr) break;
    const std::uint64_t rank = worker->rank;
    const auto job = TakeNextFor(turn, *worker);
    offered.rank = rank;
    if (!job) continue;
    if (MustRunAlone(state.jobs.At(*job))) {
      RunAlone(turn, *worker, *job, granted[worker->id()]);
    } else {
      granted[worker->id()].leases.push_back(GrantLease(turn, *worker, *job));
    }
  }
  offered.changes = AllWasSeen(turn) ? state.ready.changes() : 0;
  for (auto& [id, leases] : granted) {
    if (leases.leases.empty()) continue;  // reserved, for when it has nothing else
    turn.effects.push_back(
        SendToWorker{.peer = *state.workers.Find(id)->peer, .command = std::move(leases)});
  }
}

// Workers in quarantine get what no ready worker could run (placement.h).
void GrantToLast(Turn& turn) {
  State& state = turn.state;
  const std::vector<Uuid> in_quarantine = state.workers.InQuarantine();
  for (const Uuid& id : in_quarantine) {
    if (state.ready.size() == 0) return;
    Worker& worker = *state.workers.Find(id);
    const std::pair seen{state.ready.changes(), state.workers.changes()};
    if (!worker.peer || worker.nothing_left_at == seen) continue;
    wire::Leases leases;
    while (worker.FreeCredit() > 0 && !worker.reservation) {
      const auto job = TakeLastFor(turn, worker);
      if (!job) {
        if (AllWasSeen(turn)) {
          worker.nothing_left_at = {state.ready.changes(), state.workers.changes()};
        }
        break;
      }
      if (MustRunAlone(state.jobs.At(*job))) {
        RunAlone(turn, worker, *job, leases);
      } else {
        leases.leases.push_back(GrantLease(turn, worker, *job));
      }
    }
    if (leases.leases.empty()) continue;
    turn.effects.push_back(SendToWorker{.peer = *worker.peer, .command = std::move(leases)});
  }
}

// Under which the job was, or would have been, run.
Conditions ConditionsOf(const wire::WorkerHello& facts, const JobSpec& spec) {
  return {.hardware = facts.hardware,
          .compiler = facts.compiler,
          .threads = spec.threads,
          .cache = spec.cache,
          .policy = facts.policy};
}

// A worker was lost with the job, or lost the job. Whether that counts: the worker was heard to
// have it, or may have been ended by it before it could say so. A worker that announces a job which
// was lost before does that before it begins it; so one that was not heard to did not begin it.
LeaseEnd CountLoss(Turn& turn, Job& job, const LeaseRecord& lease) {
  ++job.losses;
  if (lease.was_held) return LeaseEnd::kLost;
  const bool was_announced =
      job.attempts() > 1 && turn.state.workers.Find(lease.worker)->Can(wire::kAnnounceCapability);
  if (job.unseen_losses++ >= turn.limits().max_unseen_losses) return LeaseEnd::kLost;
  return was_announced ? LeaseEnd::kUnrun : LeaseEnd::kLost;
}

}  // namespace

wire::Lease GrantLease(Turn& turn, Worker& worker, JobId id) {
  Job& job = turn.state.jobs.At(id);
  if (job.sharing == Sharing::kShares) LeadFlight(turn, job);
  const LeaseRecord& lease = turn.state.leases.Grant(id, worker.id(), turn.now.instant);
  turn.state.workers.AddRunning(worker, lease.id);
  job.progress = Leased{lease.id};
  job.counted.push_back(lease.id);
  return {.lease = lease.id, .job = id, .attempt = job.attempts(), .spec = job.spec};
}

Ending FailedBy(Failure failure, Verdict verdict) {
  Ending ending{.verdict = verdict};
  ending.evaluation.verdict = std::move(failure);
  return ending;
}

void EnterJob(Turn& turn, JobId id, AdmittedJob job, Instant accepted_at) {
  const Nanos waited = turn.now.instant - accepted_at;
  const Instant expires_at = ExpiryOf(job.spec, accepted_at);
  const auto* measure = std::get_if<ToMeasure>(&job.admission);
  const bool shares = measure != nullptr && job.spec.freshness != Freshness::kMeasureAnew;
  if (auto* failure = std::get_if<Failure>(&job.admission)) {
    Ending ending = FailedBy(std::move(*failure), Verdict::kAboutThisJob);
    MakeOutcome(turn, {.id = id, .ending = std::move(ending)});
  } else if (expires_at <= turn.now.instant) {  // getting it on disk took longer
    if (shares) turn.state.in_flight.Forget(QuestionOf(job.spec, *measure));
    MakeOutcome(turn,
                {.id = id, .ending = FailedBy(ExpiredFailure(job.spec), Verdict::kAboutThisJob)});
  } else if (auto* stored = std::get_if<storage::StoredAnswer>(&job.admission)) {
    MakeSharedOutcome(turn, {.id = id, .queued = waited}, std::move(*stored));
  } else {
    EnterToMeasure(turn, {.id = id,
                          .spec = std::move(job.spec),
                          .tree = measure->tree,
                          .placement = measure->placement,
                          .flop_count = measure->flop_count,
                          .sharing = shares ? Sharing::kShares : Sharing::kAlone,
                          .accepted_at = accepted_at,
                          .expires_at = expires_at});
  }
}

void GrantLeases(Turn& turn) {
  if (!MayGrant(turn)) return;
  GrantRetries(turn);
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) GrantTo(turn, device);
  GrantToLast(turn);
}

Job FinishJob(Turn& turn, JobId id, Ending ending) {
  State& state = turn.state;
  Job job = TakeJob(state, id);
  if (std::holds_alternative<Queued>(job.progress)) LeaveQueue(turn, job);
  if (std::holds_alternative<Retrying>(job.progress)) LeaveRetries(turn, job);
  if (!std::holds_alternative<Leased>(job.progress)) {
    ending.queued = turn.now.instant - job.accepted_at;
  }
  if (!ending.evaluation.tree_key) ending.evaluation.tree_key = job.tree;
  if (ending.lease) {
    state.ready.Took(state.batches.At(id.batch).client, SpentOn(ending.evaluation.stages));
  }

  std::optional<Question> settles;
  if (job.sharing == Sharing::kShares && ending.verdict == Verdict::kAboutTheTree) {
    LeadFlight(turn, job);  // it may have no worker yet: nobody is to stand for it any more
    settles = QuestionOf(job);
    state.in_flight.Answer(*settles, std::make_shared<const storage::StoredResult>(
                                         storage::StoredResult{.evaluation = ending.evaluation,
                                                               .worker = ending.worker}));
  } else if (job.sharing == Sharing::kShares) {
    LeaveFlight(turn, job, ending.verdict);
  }
  MakeOutcome(turn, {.id = id,
                     .attempts = job.attempts(),
                     .ending = std::move(ending),
                     .settles = std::move(settles),
                     .cut_above_ns = job.spec.cut_above_ns});
  return job;
}

void ShareAnswer(Turn& turn, JobId follower, storage::StoredAnswer answer) {
  const Job job = TakeJob(turn.state, follower);
  MakeSharedOutcome(turn,
                    {.id = follower,
                     .source = OutcomeSource::kCoalesced,
                     .attempts = job.attempts(),
                     .queued = turn.now.instant - job.accepted_at},
                    std::move(answer));
}

void EndWherever(Turn& turn, JobId id, Failure failure, Revocations& revoked) {
  State& state = turn.state;
  if (const auto* leased = std::get_if<Leased>(&state.jobs.At(id).progress)) {
    const LeaseId lease = leased->lease;
    revoked[state.leases.Find(lease)->worker].leases.push_back(lease);
    EndLease(turn, lease);
  }
  FinishJob(turn, id, FailedBy(std::move(failure), Verdict::kAboutThisJob));
}

void SendRevocations(Turn& turn, Revocations revoked) {
  for (auto& [id, revoke] : revoked) {
    const Worker* worker = turn.state.workers.Find(id);
    if (!worker->peer) continue;  // it is told once it is back
    turn.effects.push_back(SendToWorker{.peer = *worker->peer, .command = std::move(revoke)});
  }
}

void EndLease(Turn& turn, LeaseId id) {
  const LeaseRecord* lease = turn.state.leases.Find(id);
  LF_CHECK(lease != nullptr && lease->stage == LeaseStage::kRunning, "lease {} is not running", id);
  turn.state.workers.RemoveRunning(*turn.state.workers.Find(lease->worker), id);
  turn.state.leases.Remove(id);
}

void ReturnLease(Turn& turn, LeaseId id, LeaseEnd how) {
  const JobId job_id = turn.state.leases.Find(id)->job;
  Job& job = turn.state.jobs.At(job_id);
  const wire::WorkerHello last = turn.state.workers.Find(turn.state.leases.Find(id)->worker)->facts;
  if (how == LeaseEnd::kLost) how = CountLoss(turn, job, *turn.state.leases.Find(id));
  EndLease(turn, id);
  if (how == LeaseEnd::kUnrun) {
    std::erase(job.counted, id);
    if (AskAnother(turn, job)) return;
  }
  if (EndWithFirstVerdict(turn, job_id)) return;
  if (how == LeaseEnd::kLost && job.attempts() >= turn.limits().max_attempts) {
    Failure lost{
        .code = FailureCode::kWorkerLost,
        .message = fmt::format("the worker went away in each of {} attempts", job.attempts())};
    Ending ending = FailedBy(std::move(lost), Verdict::kAboutTheTree);
    ending.worker = last.name;
    ending.evaluation.conditions = ConditionsOf(last, job.spec);
    FinishJob(turn, job_id, std::move(ending));
    return;
  }
  PutInFront(turn, job);
}

void ReturnLeases(Turn& turn, const std::set<LeaseId>& leases, LeaseEnd how) {
  const std::vector<LeaseId> ids(leases.begin(), leases.end());  // `leases` may change below
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) ReturnLease(turn, *id, how);
}

}  // namespace loopfleet::coordinator
