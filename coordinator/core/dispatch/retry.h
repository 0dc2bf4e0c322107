#pragma once
// Second turns: what becomes of a job whose worker failed it (retry_rules.h says which failures
// count as that).
//
// A job that asks for one worker by `affinity` is never tried elsewhere: it would answer another
// question.

#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

// A worker reported that its job failed. True if the job has another turn: its lease has ended, and
// the report can be forgotten. False if this is the job's outcome.
bool TryAgain(Transaction& tx, const Worker& worker, LeaseId lease, const Evaluation& evaluation);

// A job that was to give a second opinion came back unrun: true if it now waits for another worker.
// False if it waits for no second opinion, or nobody else could give one.
bool AskAnother(Transaction& tx, Job& job);

// The second opinion about a failure cannot be had (its worker was lost): the first one stands.
// False if the job waits for none.
bool EndWithFirstVerdict(Transaction& tx, JobId job);

// Gives jobs that wait for another worker to one; those that waited long enough go back to the
// queue, or end as they were first said to. Gives reserved workers, once they have nothing else, to
// those that run alone.
void GrantRetries(Transaction& tx);

// A worker was lost with this job.
bool MustRunAlone(const Job& job);
// Reserves the worker, which has free credit, for a job that is in no queue. If it has nothing
// else, the job is granted to it, and in `leases`.
void RunAlone(Transaction& tx, Worker& worker, JobId job, wire::Leases& leases);

// A measurement of a job that another worker said cannot be run: one of the two is faulty.
void NoteContradiction(Transaction& tx, const Worker& worker, const Job& job);

}  // namespace loopfleet::coordinator
