#pragma once
// The life of a job once it is on disk: it enters, is leased, is returned, is finished. Which
// reported failures are retried: see FailurePolicy.
//
// What equal jobs share: a verdict about the tree, whether a measurement or a failure, goes to
// every job waiting for it. So does the failure that three workers were lost with it: otherwise a
// tree that crashes workers would get three more for each follower (promise I7). An ending that
// concerns only one job's circumstances (cancelled, no worker in time) is not shared: the next in
// line leads.

#include <cstdint>
#include <map>
#include <string>

#include "common/job/ids.h"
#include "common/job/outcome.h"
#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

enum class Verdict : std::uint8_t {
  kAboutTheTree,
  kAboutThisJob,  // the next in line leads
  kNobodyCame,    // no worker came; the next in line waits for one in the queue
};

struct Ending {
  Verdict verdict = Verdict::kAboutThisJob;
  OutcomeSource source = OutcomeSource::kMeasured;
  Evaluation evaluation;
  std::string worker;  // name of the measuring worker
  LeaseId lease;       // whose report this is; none without a report
  Nanos queued{0};     // how long the job waited to be granted
  std::string doubt;   // why its timing cannot serve other jobs; "": it can
};
Ending FailedBy(Failure failure, Verdict verdict);
// The failure of a job whose deadline has passed.
Failure ExpiredFailure(const JobSpec& spec);

// The job's acceptance is durable: it is answered at once, queued, or follows an equal job.
void EnterJob(Transaction& tx, JobId id, ResolvedJob&& job, Instant accepted_at);

// Grants a job that is in no queue to this worker. The caller sends the lease.
wire::Lease GrantLease(Transaction& tx, Worker& worker, JobId id);

// Makes the one outcome of a job of the JobTable; its followers are owed the same (EndNextPiece). A
// lease on it must have ended, or be the one whose report this is. Returns the job.
Job FinishJob(Transaction& tx, JobId id, Ending ending);

// Gives a follower (SingleFlightTable::TakePendingReplies) the shared answer.
void ShareAnswer(Transaction& tx, JobId follower, storage::StoredAnswer answer);

// Ends a job of the JobTable with a failure of its own. If a worker holds it, adds the lease to
// `revoked`.
using Revocations = std::map<Uuid, wire::Revoke>;
void EndWherever(Transaction& tx, JobId id, Failure failure, Revocations& revoked);
void SendRevocations(Transaction& tx, Revocations revoked);

// Ends the lease; the caller decides what happens to its job.
void EndLease(Transaction& tx, LeaseId lease);

}  // namespace loopfleet::coordinator
