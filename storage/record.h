#pragma once
// What is written and read back. The journal of accepted jobs (so that nothing accepted is lost)
// and the outcomes (so that nothing is measured twice for want of a look).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "common/job/outcome.h"

namespace loopfleet::storage {

// What replaying a job's actions found, kept with the job so that a restart need not replay it.
struct ReplayedTo {
  looptree::TreeKey tree;
  Placement placement = Placement::kCpu;
  friend bool operator==(const ReplayedTo&, const ReplayedTo&) = default;
};

// One accepted message: a new batch (first_index 0 and new_batch), or more jobs of an open one.
struct JobsAccepted {
  BatchId batch;
  Uuid client;
  Uuid request_id;
  std::string request_digest;  // of the content, to tell a repeat from a conflict
  bool new_batch = true;
  bool closes_batch = true;  // no more jobs follow
  std::uint32_t first_index = 0;
  WallTime accepted_at{};
  std::vector<JobSpec> jobs;
  std::vector<std::optional<ReplayedTo>> replayed;  // one for each job, or none at all
};

// It says how long something took: of a worker that drifts it says nothing.
inline bool IsOfTime(FailureCode code) {
  return code == FailureCode::kCompileTimeout || code == FailureCode::kRunTimeout ||
         code == FailureCode::kCut;
}

// The final word on one job. The outcome's sequence is the batch's count of finished jobs after it
// (1, 2, 3 ... without a gap). Its benchmark, actions and tag are those of the accepted job and are
// not written again; its worker and finished_at stand for a new measurement's worker and time.
struct JobFinished {
  Outcome outcome;
  // The bound that the job gave, if it gave one: what a CUT is known to be above.
  std::uint64_t cut_above_ns = 0;
  // Its worker was in quarantine: a failure that says how long something took answers for nobody.
  bool in_doubt = false;
};

// A measurement that was made earlier, or a failure that is known
// (storage/result_index/known_failures.h).
struct StoredResult {
  Evaluation evaluation;  // of a stored one, the stages are zero: they belong to its job
  std::string worker;     // that measured it
  WallTime measured_at{};
  std::int64_t row = 0;  // results.id, which never goes; 0: it is of no such row
};
// One for all who ask: never changed.
using StoredAnswer = std::shared_ptr<const StoredResult>;

// The final word on jobs that somebody else's answer finished, at one time: what JobFinished would
// say of each, told in less.
struct JobsAnswered {
  struct One {
    JobId job;
    std::uint64_t sequence = 0;
    std::uint32_t attempts = 0;
    Nanos queued{0};
    StoredAnswer answer;
  };
  // kCoalesced: an equal job's that was under way; its stages are told with it.
  OutcomeSource source = OutcomeSource::kStored;
  WallTime finished_at{};
  std::vector<One> jobs;
};
inline Outcome OutcomeOf(const JobsAnswered& answered, const JobsAnswered::One& job) {
  Outcome outcome{.job = job.job,
                  .sequence = job.sequence,
                  .source = answered.source,
                  .attempts = job.attempts,
                  .worker = job.answer->worker,
                  .finished_at = answered.finished_at,
                  .evaluation = job.answer->evaluation};
  outcome.evaluation.stages[Stage::kQueue] = job.queued;
  return outcome;
}

// The batch takes no more jobs (it is closed, too); each job without an outcome still needs one.
struct BatchCancelled {
  BatchId batch;
};

// The batch takes no more jobs, though nobody said so: its client left it open and went away.
struct BatchClosed {
  BatchId batch;
};

// What this worker measured from `since` on cannot be trusted (its canaries drifted): its results
// are flagged, and answer nothing any more, nor do the failures that say how long something took.
// What was told to clients stays as it was told.
struct ResultsSuspected {
  std::string worker;
  WallTime since{};
  WallTime flagged_at{};
  std::string reason;
};

// What was measured for this job, or the failure it met, is in doubt: another host disagrees, or
// its worker was in quarantine. It answers nothing any more. A job without an outcome is passed
// over.
struct ResultDoubted {
  JobId job;
  WallTime flagged_at{};
  std::string reason;
};

// An operator's word: the workers that `target` names take nothing new, until they are resumed.
struct WorkersDrained {
  std::string target;  // a host's name, or a worker's name or id
  std::string reason;
  std::string by;
  WallTime since{};
};
struct WorkersResumed {
  std::string target;
};

using Write = std::variant<JobsAccepted, JobFinished, BatchCancelled, ResultsSuspected, BatchClosed,
                           WorkersDrained, WorkersResumed, ResultDoubted, JobsAnswered>;

// What a submission was answered with, for when it is sent again.
struct StoredRequest {
  BatchId batch;
  std::uint32_t first_index = 0;
  std::uint32_t job_count = 0;
  std::string request_digest;
};

struct UnfinishedJob {
  JobId job;
  JobSpec spec;
  std::optional<WallTime> accepted_at;  // of one with a deadline
  std::optional<ReplayedTo> replayed;   // none: not known, replay it
};

// An accepted job, and its outcome once there is one.
struct StoredJob {
  JobSpec spec;
  std::optional<Outcome> outcome;
};

struct StoredBatch {
  BatchId batch;
  Uuid client;
  WallTime accepted_at{};
  bool closed = false;
  bool cancelled = false;
  std::uint32_t job_count = 0;
  std::uint32_t finished = 0;
  std::uint32_t failed = 0;
  std::uint32_t from_store = 0;
};

// The reference clock that times of a hardware class are stated at: the first worker's of that
// class.
struct ReferenceClock {
  std::string hardware_class;
  double mhz = 0;
};

// Everything that a coordinator needs to go on where the last one stopped.
struct Recovery {
  std::uint64_t epoch = 1;  // this start's number, already on disk
  std::uint64_t next_batch = 1;
  std::vector<StoredBatch> unfinished;  // batches that are open, or have jobs without an outcome
  std::vector<UnfinishedJob> jobs;      // those jobs, in order
  // Those whose stored row is not what was written: what was asked is lost. Each still needs its
  // outcome: STORAGE_CORRUPT.
  std::vector<JobId> damaged;
  std::vector<ReferenceClock> reference_clocks;  // of every class that results are stored of
  std::vector<WorkersDrained> drains;            // that stand
};

// Where in the outcomes of all batches, in the order of batch and sequence.
struct OutcomePlace {
  BatchId batch;
  std::uint64_t sequence = 0;
};

// What a stored measurement has to match to answer a request: the full tuple.
struct ResultKey {
  looptree::TreeKey tree;
  std::string hardware_class;
  CompilerFacts compiler;
  std::uint32_t threads = 1;
  CacheState cache = CacheState::kWarm;
  std::string policy;
  // How good and how new it has to be.
  double precision = 0;       // the widest interval (half of it, relative) that will do; 0: any
  WallTime measured_since{};  // not measured before this; the epoch: at any time
};

}  // namespace loopfleet::storage
