#include "coordinator/core/handlers/audit_transitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/dispatch/job_lifecycle.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/dispatch/retry.h"
#include "coordinator/core/handlers/on_client.h"
#include "coordinator/core/handlers/on_worker.h"
#include "coordinator/core/rules/placement.h"

namespace loopfleet::coordinator {
namespace {

using Came = AuditRecord::Came;

bool HasOpinion(const AuditCase& audit, const Uuid& worker) {
  return std::ranges::find(audit.opinions, worker, &Opinion::worker) != audit.opinions.end();
}

bool CanGiveOpinion(const AuditCase& audit, const Demand& demand, const Worker& worker) {
  return worker.state == wire::WorkerState::kReady && worker.peer &&
         worker.facts.hardware.hardware_class == audit.hardware_class &&
         Serves(worker.supply(), demand) && !HasOpinion(audit, worker.id());
}

bool HasSomebody(const State& state, const AuditCase& audit, const Demand& demand) {
  return std::ranges::any_of(state.workers.all(), [&](const auto& entry) {
    return CanGiveOpinion(audit, demand, entry.second);
  });
}

void Plan(Turn& turn, JobSpec spec, const ToMeasure& measure, AuditCase audit) {
  audit.give_up_at = turn.now.instant + turn.limits().audit_patience;
  spec.freshness = Freshness::kMeasureAnew;
  spec.tag.clear();  // its asker has the answer
  spec.cut_above_ns = 0;
  spec.deadline_s = 0;  // it has its own patience
  turn.state.audits.plans.push_back(
      {.job = {.spec = std::move(spec), .admission = measure}, .what = std::move(audit)});
}

void Note(Turn& turn, const Opinion& opinion, Came came) {
  Worker* worker = turn.state.workers.Find(opinion.worker);
  if (worker == nullptr) return;  // it has gone, and its record with it
  worker->audits.Note(came, turn.now.instant);
}

void Doubt(Turn& turn, const Opinion& opinion, std::string reason) {
  turn.writes.push_back(storage::ResultDoubted{
      .job = opinion.job, .flagged_at = turn.now.wall, .reason = std::move(reason)});
}

std::string Differs(const Opinion& a, const Opinion& b) {
  return fmt::format("{} measured {:.4g} to {:.4g} ns, {} {:.4g} to {:.4g} ns", a.name, a.low_ns,
                     a.high_ns, b.name, b.low_ns, b.high_ns);
}

// Nobody else is there to ask: both are in doubt, and neither is believed more than the other.
void LeaveOpen(Turn& turn, const AuditCase& audit) {
  for (const Opinion& opinion : audit.opinions) {
    Note(turn, opinion, Came::kDisputed);
    Doubt(turn, opinion,
          fmt::format("an audit disagrees, and nobody could settle it: {}",
                      Differs(audit.opinions[0], audit.opinions[1])));
  }
}

void Settle(Turn& turn, const AuditCase& audit) {
  const auto odd = OddOne(audit.opinions);
  if (!odd) return LeaveOpen(turn, audit);
  const Came strike = odd->is_quicker ? Came::kQuickOdd : Came::kSlowOdd;
  for (std::size_t i = 0; i < audit.opinions.size(); ++i) {
    Note(turn, audit.opinions[i], i == odd->which ? strike : Came::kConfirmed);
  }
  const Opinion& culprit = audit.opinions[odd->which];
  Doubt(turn, culprit,
        fmt::format("two audits disagree: {}",
                    Differs(culprit, audit.opinions[(odd->which + 1) % audit.opinions.size()])));
  Worker* worker = turn.state.workers.Find(culprit.worker);
  if (worker == nullptr || !worker->audits.IsConvicted() || !worker->refuted_by.empty()) return;
  for (std::size_t i = 0; i < audit.opinions.size(); ++i) {
    if (i != odd->which) worker->refuted_by.push_back(audit.opinions[i].name);
  }
  worker->quarantined_at = turn.now.instant;
  Distrust(turn, *worker, turn.now.instant - worker->audits.BelievedUntil());
  if (worker->state != wire::WorkerState::kLost) {
    turn.state.workers.SetState(*worker, StateOf(*worker));
  }
}

void Judge(Turn& turn, AuditTable::Complete complete) {
  AuditCase& audit = complete.what;
  const Demand demand = DemandOf(complete.spec, complete.measure.placement);
  const bool is_third = audit.opinions.size() == 3;
  if (!is_third && Agree(audit.opinions[0], audit.opinions[1])) {
    for (const Opinion& opinion : audit.opinions) Note(turn, opinion, Came::kConfirmed);
    return;
  }
  if (!is_third) {
    turn.effects.push_back(Observation{WorkersDisagreed{.failed = audit.opinions[0].name,
                                                        .measured = audit.opinions[1].name,
                                                        .job = audit.opinions[0].job,
                                                        .code = FailureCode::kUnstableTiming}});
    if (HasSomebody(turn.state, audit, demand)) {
      return Plan(turn, std::move(complete.spec), complete.measure, std::move(audit));
    }
    return LeaveOpen(turn, audit);
  }
  Settle(turn, audit);
}

}  // namespace

void ConsiderAudit(Turn& turn, const Worker& worker, const Job& job,
                   const Measurement& measurement) {
  State& state = turn.state;
  const Limits& limits = state.limits;
  // Of batches of the coordinator's own none is: audits would be audited without end.
  if (state.batches.At(job.id.batch).client == Uuid{} || !job.spec.affinity.empty()) return;
  if (!IsAudited(job.id, limits.audits_per_10000) || state.audits.size() >= limits.max_audits) {
    return;
  }
  AuditCase audit{.opinions = {OpinionOf(worker.id(), worker.facts.name, job.id, measurement)},
                  .hardware_class = worker.facts.hardware.hardware_class};
  if (!HasSomebody(state, audit, DemandOf(job))) return;
  Plan(turn, job.spec, ToMeasureOf(job), std::move(audit));
}

void BeginAudits(Turn& turn) {
  AuditTable& audits = turn.state.audits;
  if (audits.plans.empty() || turn.state.service != Service::kServing) return;
  std::vector<AdmittedJob> jobs;
  for (AuditTable::Plan& plan : audits.plans) jobs.push_back(std::move(plan.job));
  const auto batch = SubmitOwnBatch(turn, std::move(jobs));
  std::uint32_t index = 0;
  for (AuditTable::Plan& plan : std::exchange(audits.plans, {})) {
    if (batch) audits.cases.emplace(JobId{.batch = *batch, .index = index++}, std::move(plan.what));
  }
}

bool EnterAudit(Turn& turn, Job& job) {
  if (!turn.state.audits.cases.contains(job.id)) return false;
  turn.state.audits.StartWaiting(job.id, turn.now.instant);
  job.progress = Auditing{};
  return true;
}

namespace {

std::vector<Worker*> Idle(State& state, DeviceKind device) {
  std::vector<Worker*> idle;
  for (Worker* worker = state.workers.NextCandidate(device, 0); worker != nullptr;
       worker = state.workers.NextCandidate(device, worker->rank)) {
    if (worker->running.empty()) idle.push_back(worker);
  }
  return idle;
}

// Those who idle and can be new to some audit that waits, longest idle first. No audit is new to
// those who were asked before, if none is unasked.
std::vector<Worker*> WhoToAsk(State& state, DeviceKind device) {
  if (!state.audits.unasked[static_cast<std::size_t>(device)].empty()) return Idle(state, device);
  std::vector<Worker*> idle;
  for (const auto& [rank, worker] : state.workers.newly_idle(device)) idle.push_back(worker);
  return idle;
}

// The first of these audits that the worker can be asked for.
template <class Jobs, class IdOf>
std::optional<JobId> FirstFor(State& state, const Worker& worker, const Jobs& jobs,
                              const IdOf& id_of) {
  for (const auto& entry : jobs) {
    const JobId id = id_of(entry);
    ++state.audits.looks;
    const Demand demand = DemandOf(state.jobs.At(id));
    if (CanGiveOpinion(state.audits.cases.at(id), demand, worker)) return id;
  }
  return std::nullopt;
}

std::optional<JobId> FirstWaiting(State& state, const Worker& worker) {
  return FirstFor(state, worker, state.audits.waiting, [](const auto& e) { return e.first; });
}

void GrantAudit(Turn& turn, Worker& worker, JobId id) {
  turn.state.audits.StopWaiting(id);
  wire::Leases leases;
  if (MustRunAlone(turn.state.jobs.At(id))) {
    RunAlone(turn, worker, id, leases);  // it is idle: at once
  } else {
    leases.leases.push_back(GrantLease(turn, worker, id));
  }
  turn.effects.push_back(SendToWorker{.peer = *worker.peer, .command = std::move(leases)});
}

}  // namespace

std::optional<JobId> TakeDueAudit(Turn& turn, const Worker& worker) {
  State& state = turn.state;
  AuditTable& audits = state.audits;
  const std::uint32_t due = state.limits.grants_per_audit;
  std::uint32_t& passed = audits.passed[static_cast<std::size_t>(worker.device())];
  if (audits.waiting.empty() || passed < due) return std::nullopt;
  // Whoever has a row of jobs waiting does not notice it; the one job that somebody waits for goes
  // first, for as long again.
  const bool is_noticed = state.ready.RowOfNext(worker.supply()) < state.limits.audit_row;
  if (is_noticed && passed / 2 < due) return std::nullopt;
  const auto audit = FirstWaiting(state, worker);
  // There may be none for this worker: looking again at each grant would cost more than the grant.
  passed = audit ? 0 : due - (due + 3) / 4;
  if (audit) audits.StopWaiting(*audit);
  return audit;
}

void GrantAudits(Turn& turn) {
  State& state = turn.state;
  AuditTable& audits = state.audits;
  if (audits.waiting.empty() || state.retries.size() > 0) return;
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    auto& unasked = audits.unasked[static_cast<std::size_t>(device)];
    for (Worker* worker : WhoToAsk(state, device)) {
      const bool is_new = state.workers.newly_idle(device).contains(worker->rank);
      const auto chosen = is_new ? FirstWaiting(state, *worker)
                                 : FirstFor(state, *worker, unasked, [](JobId id) { return id; });
      if (chosen) GrantAudit(turn, *worker, *chosen);
    }
    unasked.clear();
    state.workers.ForgetNewlyIdle(device);
  }
}

void ExpireAudits(Turn& turn) {
  State& state = turn.state;
  AuditTable& audits = state.audits;
  std::set<JobId> over;
  for (const auto& [id, since] : audits.waiting) {
    if (turn.now.instant < audits.cases.at(id).give_up_at) break;  // nor are those that follow
    over.insert(id);
  }
  const auto check = [&](JobId id) {
    ++audits.looks;
    if (!HasSomebody(state, audits.cases.at(id), DemandOf(state.jobs.At(id)))) over.insert(id);
  };
  if (std::exchange(audits.checked_changes, state.workers.changes()) != state.workers.changes()) {
    for (const auto& [id, since] : audits.waiting) check(id);
  } else {
    for (const JobId id : audits.unchecked) check(id);
  }
  audits.unchecked.clear();
  for (const JobId id : over) {
    FinishJob(turn, id,
              FailedBy({.code = FailureCode::kExpired,
                        .message = "no other worker of the class had a turn for this audit"},
                       Verdict::kAboutThisJob));
  }
}

void CheckAudits(const State& state) {
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.rank == 0 || !worker.running.empty()) continue;
    if (state.workers.newly_idle(worker.device()).contains(worker.rank)) continue;
    const auto& unasked = state.audits.unasked[static_cast<std::size_t>(worker.device())];
    for (const auto& [job, since] : state.audits.waiting) {
      const Demand demand = DemandOf(*state.jobs.Find(job));
      LF_CHECK(unasked.contains(job) ||
                   !CanGiveOpinion(state.audits.cases.at(job), demand, worker),
               "worker {} idles, and was not asked for audit {}", worker.facts.name, job);
    }
  }
}

void EndAudit(Turn& turn, JobId id, const Worker* worker, const Evaluation& evaluation) {
  State& state = turn.state;
  const auto found = state.audits.cases.find(id);
  if (found == state.audits.cases.end()) return;
  AuditCase audit = std::move(found->second);
  state.audits.cases.erase(found);
  state.audits.StopWaiting(id);
  // One that failed, or came to somebody who has an opinion already, settles nothing.
  if (worker == nullptr || !evaluation.ok() || HasOpinion(audit, worker->id())) return;
  audit.opinions.push_back(
      OpinionOf(worker->id(), worker->facts.name, id, evaluation.measurement()));
  const Job& job = state.jobs.At(id);
  state.audits.complete.push_back(
      {.what = std::move(audit), .spec = job.spec, .measure = ToMeasureOf(job)});
}

void JudgeAudits(Turn& turn) {
  for (AuditTable::Complete& complete : std::exchange(turn.state.audits.complete, {})) {
    Judge(turn, std::move(complete));
  }
}

}  // namespace loopfleet::coordinator
