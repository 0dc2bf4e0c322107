#pragma once
// Audits: a few of the measurements are made again by another worker of the same hardware class: by
// one that idles, or, while jobs are queued, as one of so many grants (Limits::grants_per_audit).

#include <optional>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// The worker measured this job, which is about to be finished: perhaps it is to be audited.
void ConsiderAudit(Turn& turn, const Worker& worker, const Job& job,
                   const Measurement& measurement);
// Submits the audits that were considered: one batch of them all.
void BeginAudits(Turn& turn);
// The job, if it is an audit, waits for its worker. False: it is none.
bool EnterAudit(Turn& turn, Job& job);
// The worker is about to be given a job that is queued: the audit that it is to have instead, if it
// is an audit's turn and one waits that this worker can settle. Out of those that wait; the caller
// leases it.
std::optional<JobId> TakeDueAudit(Turn& turn, const Worker& worker);
// Gives audits to workers that idle. After what is queued was given out: it is for others.
void GrantAudits(Turn& turn);
// Ends those that waited for too long, or for somebody who is not there any more.
void ExpireAudits(Turn& turn);
// Compares the opinions of audits that ended in this turn, and draws the conclusions.
void JudgeAudits(Turn& turn);
// Whoever idles was asked for every audit that waits. Aborts otherwise. For tests.
void CheckAudits(const State& state);
// A job ends. If it is an audit, and this worker measured it, that is one opinion more.
void EndAudit(Turn& turn, JobId job, const Worker* worker, const Evaluation& evaluation);

}  // namespace loopfleet::coordinator
