#include "coordinator/core/handlers/on_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/lease_return.h"
#include "coordinator/core/dispatch/rebalance.h"
#include "coordinator/core/dispatch/retry.h"
#include "coordinator/core/handlers/on_canaries.h"
#include "coordinator/core/handlers/on_hello.h"
#include "coordinator/core/handlers/report_validation.h"
#include "coordinator/core/rules/freshness.h"
#include "coordinator/core/state/worker_reply.h"

namespace loopfleet::coordinator {
namespace {

using wire::WorkerState;

void OnHeartbeat(Transaction& tx, Worker& worker, const wire::Heartbeat& heartbeat) {
  State& state = tx.state;
  worker.said = heartbeat.drain;
  Send(tx, *worker.peer, wire::HeartbeatAnswer{});
  OnCanaries(tx, worker, heartbeat);
  state.workers.SetState(worker, StateOf(worker));

  const std::set<LeaseId> held(heartbeat.held.begin(), heartbeat.held.end());
  for (const LeaseId lease : worker.running) {
    if (held.contains(lease)) state.leases.Find(lease)->was_held = true;
  }
  std::set<LeaseId> missing = ArrivedBy(tx, worker);
  std::erase_if(missing, [&](LeaseId lease) { return held.contains(lease); });
  ReturnMissing(tx, missing);

  wire::Revoke revoke;
  for (const LeaseId lease : held) {
    const LeaseRecord* record = state.leases.Find(lease);
    if (record == nullptr || record->worker != worker.id()) revoke.leases.push_back(lease);
  }
  if (!revoke.leases.empty()) Send(tx, *worker.peer, std::move(revoke));
}

// Excludes the time that the job waited in the worker.
Nanos TimeInWorker(const StageDurations& stages) {
  Nanos took{0};
  for (const Stage stage : {Stage::kReplay, Stage::kCompile, Stage::kVerify, Stage::kMeasure}) {
    took += stages[stage];
  }
  return took;
}

// Handles the report of a running lease. Returns whether the worker may forget it at once.
enum class Keep : bool { kForgetNow, kUntilDurable };
Keep OnReport(Transaction& tx, Worker& worker, LeaseRecord& lease, Evaluation&& evaluation) {
  State& state = tx.state;
  const Job& job = state.jobs.At(lease.job);
  ++worker.finished_jobs;
  const auto why = WhyImplausible(evaluation, job, worker);
  if (!why) {
    worker.job_took.Add(TimeInWorker(evaluation.stages));
  } else {
    tx.effects.push_back(Observation{
        ReportWasImplausible{.worker = worker.facts.name, .job = job.id, .reason = *why}});
    evaluation = Evaluation{
        .verdict = Failure{.code = FailureCode::kWorkerCrashed,
                           .message = fmt::format("worker {} sent a report that cannot be: {}",
                                                  worker.facts.name, *why)}};
  }
  if (!evaluation.ok() && evaluation.failure().code == FailureCode::kVersionMismatch) {
    tx.effects.push_back(Observation{LeaseWasUnreadable{
        .worker = worker.facts.name, .job = job.id, .reason = evaluation.failure().message}});
  }
  std::string doubt = DoubtOf(worker, lease);
  if (TryAgain(tx, worker, lease.id, evaluation, doubt)) return Keep::kForgetNow;
  const bool is_measured = evaluation.is_timed();
  const bool is_doubted = !doubt.empty();
  if (is_measured) {
    NoteContradiction(tx, worker, job);
    worker.recent_grades.Add(evaluation.measurement().grade);
  }
  if (is_doubted) PutInDoubt(evaluation, doubt);
  lease.stage = LeaseStage::kReported;
  state.workers.MarkReported(worker, lease.id);
  Job finished = FinishJob(tx, job.id,
                           {.verdict = Verdict::kAboutTheTree,
                            .source = OutcomeSource::kMeasured,
                            .evaluation = std::move(evaluation),
                            .worker = worker.facts.name,
                            .lease = lease.id,
                            .queued = lease.granted_at - job.accepted_at,
                            .doubt = std::move(doubt)});
  if (is_measured && !is_doubted) RememberInDoubt(tx, worker, std::move(finished));
  return Keep::kUntilDurable;
}

void OnReports(Transaction& tx, Worker& worker, wire::Reports reports) {
  wire::ReportsStored unwanted;
  tx.writes.reserve(reports.reports.size());
  tx.commit.outcomes.reserve(reports.reports.size());
  tx.finished.jobs.reserve(reports.reports.size());
  for (wire::Report& report : reports.reports) {
    LeaseRecord* lease = tx.state.leases.Find(report.lease);
    const bool matches =
        lease != nullptr && lease->worker == worker.id() && lease->job == report.job;
    if (matches && lease->stage == LeaseStage::kReported) continue;  // already on its way to disk
    if (!matches ||
        OnReport(tx, worker, *lease, std::move(report.evaluation)) == Keep::kForgetNow) {
      unwanted.leases.push_back(report.lease);
    }
  }
  if (!unwanted.leases.empty()) Send(tx, *worker.peer, std::move(unwanted));
}

void OnGoodbye(Transaction& tx, Worker& worker, const wire::Goodbye& goodbye) {
  std::set<LeaseId> unrun;
  for (const LeaseId lease : goodbye.returned) {
    if (worker.running.contains(lease)) unrun.insert(lease);
  }
  const std::size_t taken = worker.running.size();
  ReturnLeases(tx, unrun, LeaseEnd::kUnrun);
  ReturnMissing(tx, std::set(worker.running));  // leases that crossed the goodbye are among these
  Observe(tx, WorkerChange::kLeft, worker, taken);
  tx.state.workers.Remove(worker.id());
}

void OnCodeLookup(Transaction& tx, const Worker& worker, wire::CodeLookup lookup) {
  const LeaseRecord* lease = tx.state.leases.Find(lookup.lease);
  const bool is_running =
      lease != nullptr && lease->worker == worker.id() && lease->stage == LeaseStage::kRunning;
  const Job* job = is_running ? &tx.state.jobs.At(lease->job) : nullptr;
  if (job == nullptr || !job->program || job->spec.freshness != Freshness::kAllowStored) {
    return Send(tx, *worker.peer, wire::CodeLookupAnswer{.lease = lookup.lease});
  }
  const JobSpec& spec = job->spec;
  const WorkerKind kind = KindOf(worker.facts);
  tx.effects.push_back(
      AnswerCodeLookup{.peer = *worker.peer,
                       .lookup = std::move(lookup),
                       .program = *job->program,
                       .key = {.hardware_class = kind.hardware_class,
                               .compiler = kind.compiler,
                               .threads = spec.threads,
                               .cache = spec.cache,
                               .policy = kind.policy,
                               .precision = spec.precision,
                               .min_grade = spec.min_grade,
                               .measured_since = MeasuredSince(tx.now.wall, spec.max_age_s)},
                       .measured_by = spec.affinity.empty() ? std::string() : worker.facts.name});
}

struct MessageVisitor {
  Transaction& tx;
  const PeerId& peer;
  const KeyText& key;

  void operator()(wire::WorkerHello hello) const { OnHello(tx, peer, std::move(hello), key); }
  void operator()(const wire::Heartbeat& heartbeat) const {
    if (Worker* worker = Known()) OnHeartbeat(tx, *worker, heartbeat);
  }
  void operator()(wire::Reports reports) const {
    if (Worker* worker = Known()) OnReports(tx, *worker, std::move(reports));
  }
  void operator()(const wire::Goodbye& goodbye) const {
    if (Worker* worker = Speaker()) OnGoodbye(tx, *worker, goodbye);
  }
  void operator()(const wire::Returned& returned) const {
    if (Worker* worker = Known()) OnReturned(tx, *worker, returned);
  }
  void operator()(wire::CodeLookup lookup) const {
    if (const Worker* worker = Known()) OnCodeLookup(tx, *worker, std::move(lookup));
  }
  void operator()(wire::BlobWanted wanted) const {
    if (Known() != nullptr) {
      tx.effects.push_back(SendBlob{.to = {.peer = peer}, .wanted = std::move(wanted)});
    }
  }
  void operator()(wire::BlobPiece piece) const {
    if (Known() != nullptr) {
      tx.effects.push_back(KeepBlob{.from = {.peer = peer}, .piece = std::move(piece)});
    }
  }
  void operator()(const wire::UnknownMember& unknown) const {
    Failure failure{
        .code = FailureCode::kUnsupported,
        .message = fmt::format("worker messages of kind {} are not known here", unknown.member)};
    tx.effects.push_back(Observation{RequestWasRefused{failure.code}});
    Send(tx, peer, wire::Refused{.failure = std::move(failure)});
  }

  // A peer chooses its routing id itself and could use another's, so the key must match, too.
  Worker* Speaker() const {
    Worker* worker = tx.state.workers.FindByPeer(peer);
    return worker != nullptr && worker->key == key ? worker : nullptr;
  }
  Worker* Known() const {
    Worker* worker = Speaker();
    if (worker == nullptr) {
      Send(tx, peer, wire::HelloWanted{});
    } else {
      worker->heard_at = tx.now.instant;
    }
    return worker;
  }
};

}  // namespace

void OnWorkerSaid(Transaction& tx, WorkerSaid event) {
  std::visit(MessageVisitor{tx, event.peer, event.key}, std::move(event.message));
}

void OnWorkerUnreachable(Transaction& tx, const WorkerUnreachable& event) {
  State& state = tx.state;
  // Not lost yet: it may reconnect with the jobs it runs.
  if (Worker* worker = state.workers.FindByPeer(event.peer)) state.workers.Disconnect(*worker);
  // Several messages may find the connection broken; each reports its own leases.
  std::set<LeaseId> undelivered;
  for (const LeaseId id : event.undelivered) {
    const LeaseRecord* lease = state.leases.Find(id);
    if (lease != nullptr && lease->stage == LeaseStage::kRunning) undelivered.insert(id);
  }
  ReturnLeases(tx, undelivered, LeaseEnd::kUnrun);
}

void RemoveWorkersWith(Transaction& tx, const std::set<KeyText>& keys) {
  std::vector<Uuid> ids;
  for (const auto& [id, worker] : tx.state.workers.all()) {
    if (keys.contains(worker.key)) ids.push_back(id);
  }
  for (const Uuid& id : ids) {
    Worker& worker = *tx.state.workers.Find(id);
    const std::size_t taken = worker.running.size();
    ReturnLeases(tx, worker.running, LeaseEnd::kUnrun);  // none of the jobs is at fault
    Observe(tx, WorkerChange::kLeft, worker, taken);
    tx.state.workers.Remove(id);
  }
}

void LoseSilentWorkers(Transaction& tx) {
  State& state = tx.state;
  const Instant silent_since =
      tx.now.instant - state.limits.heartbeat * state.limits.missed_heartbeats;
  for (const Uuid& id : state.workers.HeardBefore(silent_since)) {
    Worker& worker = *state.workers.Find(id);
    const std::size_t taken = worker.running.size();
    ReturnLeases(tx, worker.running, LeaseEnd::kLost);
    state.workers.SetState(worker, WorkerState::kLost);
    Observe(tx, WorkerChange::kLost, worker, taken);
    state.workers.ForgetReplaced(worker);
  }
  state.workers.ForgetLost(tx.now.instant - state.limits.lost_worker_shown);
}

}  // namespace loopfleet::coordinator
