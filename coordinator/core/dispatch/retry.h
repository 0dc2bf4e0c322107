#pragma once
// Retries: what happens to a job that failed because of its worker (FailurePolicy lists the
// failures).
//
// A job that asks for one worker by `affinity` is never retried elsewhere: that would answer a
// different question.

#include <string>

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// A worker reported that its job failed. True if the job is retried: its lease has ended, and the
// report can be dropped. False if the failure is the job's outcome.
// `doubt`: as in Ending.
bool TryAgain(Transaction& tx, const Worker& worker, LeaseId lease, const Evaluation& evaluation,
              const std::string& doubt);

// A job granted for a second verdict was returned unrun. True if it now waits for another worker;
// false if it needs no second verdict, or no other worker could give one.
bool AskAnother(Transaction& tx, Job& job);

// No second verdict can be had (its worker was lost), so the first one is the outcome. False if the
// job has no first verdict.
bool EndWithFirstVerdict(Transaction& tx, JobId job);

// Grants the jobs waiting for another worker. Those that waited long enough go back to the queue,
// or end with their first verdict. Grants the jobs that run alone once their reserved workers have
// no other jobs.
void GrantRetries(Transaction& tx);

// Whether a worker was lost with this job.
bool MustRunAlone(const Job& job);
// Reserves the worker, which must have free credit, for a job that is in no queue. If the worker
// has no other jobs, grants the job and adds its lease to `leases`.
void RunAlone(Transaction& tx, Worker& worker, JobId job, wire::Leases& leases);

// Notes that this worker measured a job which another worker reported as failing: one of them is
// faulty.
void NoteContradiction(Transaction& tx, const Worker& worker, const Job& job);

}  // namespace loopfleet::coordinator
