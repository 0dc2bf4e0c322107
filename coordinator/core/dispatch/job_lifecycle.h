#pragma once
// What can become of a job once it is on disk: it enters, is leased, comes back, is finished.
//
// Which failures that a worker reports are tried again: retry_rules.h.
//
// What equal jobs share: a verdict about the tree, whether a measurement or a failure, goes to
// everybody who waits for it; so does "three workers were lost with it", or a tree that kills
// workers would get three more for each follower (promise I7). An ending about one job's own
// circumstances (cancelled, no worker in time) is its own: the next in line takes the lead.

#include <cstdint>
#include <map>
#include <string>

#include "common/job/ids.h"
#include "common/job/outcome.h"
#include "coordinator/core/state/state.h"

namespace loopfleet::coordinator {

enum class Verdict : std::uint8_t {
  kAboutTheTree,
  kAboutThisJob,  // the next in line gets its turn
  kNobodyCame,    // the next in line waits for one, as everybody does
};

struct Ending {
  Verdict verdict = Verdict::kAboutThisJob;
  OutcomeSource source = OutcomeSource::kMeasured;
  Evaluation evaluation;
  std::string worker;  // name of the one that measured
  LeaseId lease;       // whose report this is; none if it is none
  Nanos queued{0};     // how long the job waited for its turn
  std::string doubt;   // why what it says of time answers nobody else; "": it may
};
Ending FailedBy(Failure failure, Verdict verdict);
// Its deadline has come.
Failure ExpiredFailure(const JobSpec& spec);

// The job's acceptance is durable: answered at once, or queued, or follows an equal one.
void EnterJob(Transaction& tx, JobId id, AdmittedJob job, Instant accepted_at);

// The job, which is in no queue, is this worker's. To be sent to it.
wire::Lease GrantLease(Transaction& tx, Worker& worker, JobId id);

// Makes the one outcome of a job of the JobTable; its followers are owed the same (EndNextPiece). A
// lease that it has must have ended, or be the one whose report this is. Returns the job.
Job FinishJob(Transaction& tx, JobId id, Ending ending);

// The job, which follows (SingleFlightTable::TakePendingReplies), has the same answer.
void ShareAnswer(Transaction& tx, JobId follower, storage::StoredAnswer answer);

// Ends a job of the JobTable on its own account. The worker that may have it is to be told.
using Revocations = std::map<Uuid, wire::Revoke>;
void EndWherever(Transaction& tx, JobId id, Failure failure, Revocations& revoked);
void SendRevocations(Transaction& tx, Revocations revoked);

// The lease ends; what becomes of its job is up to the caller.
void EndLease(Transaction& tx, LeaseId lease);

}  // namespace loopfleet::coordinator
