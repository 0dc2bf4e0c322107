#pragma once
// Audits: a few of the measurements are made again by another worker of the same hardware class.
// They never get in the way of anybody: an audit waits until nothing is queued and a worker idles.

#include "coordinator/state.h"

namespace loopfleet::coordinator {

// The worker measured this job, which is about to be finished: perhaps it is to be audited.
void ConsiderAudit(Turn& turn, const Worker& worker, const Job& job,
                   const Measurement& measurement);
// Submits the audits that were considered: one batch of them all.
void BeginAudits(Turn& turn);
// The job, if it is an audit, waits for its worker. False: it is none.
bool EnterAudit(Turn& turn, Job& job);
// Gives audits to workers that idle.
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
