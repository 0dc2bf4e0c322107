#include "coordinator/audit_transitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/client_transitions.h"
#include "coordinator/flow_transitions.h"
#include "coordinator/job_transitions.h"
#include "coordinator/placement.h"
#include "coordinator/queue_transitions.h"
#include "coordinator/retry_transitions.h"
#include "coordinator/worker_transitions.h"

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
  if (worker == nullptr || !worker->audits.IsConvicted() || !worker->audit_verdict.empty()) return;
  worker->audit_verdict = worker->audits.Verdict();
  Distrust(turn, *worker, turn.now.instant - worker->audits.BelievedUntil(), worker->audit_verdict);
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
  turn.state.audits.waiting.emplace(job.id, turn.now.instant);
  job.progress = Auditing{};
  return true;
}

std::optional<JobId> TakeAudit(Turn& turn, const Worker& worker) {
  State& state = turn.state;
  AuditTable& audits = state.audits;
  const auto chosen = std::ranges::find_if(audits.waiting, [&](const auto& entry) {
    return CanGiveOpinion(audits.cases.at(entry.first), DemandOf(state.jobs.At(entry.first)),
                          worker);
  });
  if (chosen == audits.waiting.end()) return std::nullopt;
  const JobId id = chosen->first;
  audits.waiting.erase(chosen);
  return id;
}

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
  const auto audit = TakeAudit(turn, worker);
  // There may be none for this worker: looking again at each grant would cost more than the grant.
  passed = audit ? 0 : due - (due + 3) / 4;
  return audit;
}

void GrantAudits(Turn& turn) {
  State& state = turn.state;
  if (state.audits.waiting.empty() || state.retries.size() > 0) return;
  for (const DeviceKind device : {DeviceKind::kCpu, DeviceKind::kCuda}) {
    if (!NothingIsQueued(state, device)) continue;  // nobody is kept waiting
    std::vector<Worker*> idle;
    for (Worker* worker = state.workers.NextCandidate(device, 0);
         worker != nullptr && idle.size() < state.limits.max_audits;
         worker = state.workers.NextCandidate(device, worker->rank)) {
      if (worker->running.empty()) idle.push_back(worker);
    }
    for (Worker* one : idle) {
      Worker& worker = *one;
      const auto audit = TakeAudit(turn, worker);
      if (!audit) continue;
      wire::Leases leases;
      if (MustRunAlone(state.jobs.At(*audit))) {
        RunAlone(turn, worker, *audit, leases);  // it is idle: at once
      } else {
        leases.leases.push_back(GrantLease(turn, worker, *audit));
      }
      turn.effects.push_back(SendToWorker{.peer = *worker.peer, .command = std::move(leases)});
    }
  }
}

void ExpireAudits(Turn& turn) {
  State& state = turn.state;
  std::vector<JobId> over;
  for (const auto& [id, since] : state.audits.waiting) {
    const AuditCase& audit = state.audits.cases.at(id);
    const bool is_over = turn.now.instant >= audit.give_up_at ||
                         !HasSomebody(state, audit, DemandOf(state.jobs.At(id)));
    if (is_over) over.push_back(id);
  }
  for (const JobId id : over) {
    FinishJob(turn, id,
              FailedBy({.code = FailureCode::kExpired,
                        .message = "no other worker of the class had a turn for this audit"},
                       Verdict::kAboutThisJob));
  }
}

void EndAudit(Turn& turn, JobId id, const Worker* worker, const Evaluation& evaluation) {
  State& state = turn.state;
  const auto found = state.audits.cases.find(id);
  if (found == state.audits.cases.end()) return;
  AuditCase audit = std::move(found->second);
  state.audits.cases.erase(found);
  state.audits.waiting.erase(id);
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
