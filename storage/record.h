#pragma once
// The records that the store writes and reads. The journal of accepted jobs keeps accepted work
// across crashes; stored outcomes spare measuring the same thing twice.

#include <cstddef>
#include <cstdint>
#include <limits>
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

// The result of replaying a job's actions, stored with the job to spare a restart the replay.
struct ReplayResult {
  SubjectKey subject;
  Placement placement = Placement::kCpu;
  friend bool operator==(const ReplayResult&, const ReplayResult&) = default;
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
  std::vector<std::optional<ReplayResult>> replayed;  // one for each job, or none at all
};

// A worker that gave a verdict, or that could.
struct Witness {
  std::string worker;  // its name
  std::string host;
  friend auto operator<=>(const Witness&, const Witness&) = default;
};

// The final outcome of one job. Its sequence is the batch's count of finished jobs, this one
// included (1, 2, 3 ... without a gap). Its benchmark, actions and tag are those of the accepted
// job and are not written again. The worker and finished_at of a new measurement are also those of
// its result.
struct JobFinished {
  Outcome outcome;
  // Of the schedule that was measured, which StoreReader::FindBest and FindSameCode find by it;
  // none: not asked for.
  std::optional<ProgramKey> program = std::nullopt;
  // The job's bound in nanoseconds, which the time of a CUT is known to exceed; 0: none.
  std::uint64_t cut_above_ns = 0;
  // Its worker was in quarantine: the failure answers no other job.
  bool in_doubt = false;
  // Workers that gave the job the same verdict in earlier attempts.
  std::vector<Witness> agreeing;
};

// Known failures to be forgotten (storage/sqlite/result_index/known_failures.h): those that meet
// all of it.
struct FailureFilter {
  std::string of;                   // the name of a worker or of a host; "": any
  std::optional<FailureCode> code;  // none: any
  WallTime failed_before = WallTime::max();
};

// The job of another coordinator that measured a result (storage/postgres/shared_results.h).
struct Elsewhere {
  Uuid coordinator;  // the incarnation of its database
  JobId job;
  friend bool operator==(const Elsewhere&, const Elsewhere&) = default;
};

// A measurement made earlier, or a known failure (storage/sqlite/result_index/known_failures.h).
struct StoredResult {
  Evaluation evaluation;  // stages are zero if it was read from the store
  std::string worker;     // the one that measured it
  WallTime measured_at{};
  // results.id, or below 0 minus observations.id, which stands for observed values that were left
  // out. Never deleted. 0: neither.
  std::int64_t row = 0;
  std::optional<Elsewhere> elsewhere = std::nullopt;  // then `row` is 0
};
// Shared by all readers and never changed.
using StoredAnswer = std::shared_ptr<const StoredResult>;

// One of the fastest schedules of a program.
struct BestSchedule {
  JobId job;     // that measured it; its batch may have been pruned
  JobSpec spec;  // as that job asked, without tag and deadline
  StoredResult measured;
};
struct BestQuery {
  ProgramKey program;
  std::string hardware_class;  // "": any
  std::uint32_t threads = 1;
  CacheState cache = CacheState::kWarm;
  std::size_t max = 1;
};

// The outcomes of jobs that another job's answer finished at one time. Says the same as one
// JobFinished for each, in less space.
struct JobsAnswered {
  struct One {
    JobId job;
    std::uint64_t sequence = 0;
    std::uint32_t attempts = 0;
    Nanos queued{0};
    StoredAnswer answer;
  };
  // kCoalesced: the answer of an equal job that was under way, with that job's stages.
  OutcomeSource source = OutcomeSource::kStored;
  WallTime finished_at{};
  std::vector<One> jobs;
};
// The outcome but for what the answer says, of which it has the stages: a verdict may be large.
inline Outcome FrameOf(const JobsAnswered& answered, const JobsAnswered::One& job) {
  Outcome outcome{.job = job.job,
                  .sequence = job.sequence,
                  .source = answered.source,
                  .attempts = job.attempts,
                  .worker = job.answer->worker,
                  .finished_at = answered.finished_at};
  outcome.evaluation.stages = job.answer->evaluation.stages;
  outcome.evaluation.stages[Stage::kQueue] = job.queued;
  return outcome;
}
inline Outcome OutcomeOf(const JobsAnswered& answered, const JobsAnswered::One& job) {
  Outcome outcome = FrameOf(answered, job);
  const StageDurations stages = outcome.evaluation.stages;
  outcome.evaluation = job.answer->evaluation;
  outcome.evaluation.stages = stages;
  return outcome;
}

// The batch is cancelled and takes no more jobs. Each job without an outcome still needs one.
struct BatchCancelled {
  BatchId batch;
};

// The batch takes no more jobs: its client left it open and disappeared.
struct BatchClosed {
  BatchId batch;
};

// The worker's measurements from `since` on cannot be trusted: its canaries drifted. Its results
// are flagged and no longer answer requests, nor do its failures. Outcomes that clients already
// have do not change.
struct ResultsSuspected {
  std::string worker;
  WallTime since{};
  WallTime flagged_at{};
  std::string reason;
};

// The job's measurement or failure is in doubt: another host disagrees, or its worker was in
// quarantine. It no longer answers requests. A job without an outcome is skipped.
struct ResultDoubted {
  JobId job;
  WallTime flagged_at{};
  std::string reason;
};

// Names a figure: what was measured, by which worker, maybe for another coordinator, and when.
struct FigureName {
  SubjectKey subject;
  std::string worker;
  WallTime measured_at{};
  friend bool operator==(const FigureName&, const FigureName&) = default;
};

// A figure that came into doubt, by ResultsSuspected or ResultDoubted.
struct Doubt {
  std::int64_t number = 0;  // ascends in the order in which they came
  SubjectKey subject;
  std::string worker;  // that measured it, maybe for another coordinator
  WallTime measured_at{};
  WallTime flagged_at{};
  std::string reason;
};

// An operator's order: the workers that `target` names take nothing new until they are resumed.
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

// The answer to a submission, for a repeat of it.
struct StoredRequest {
  BatchId batch;
  std::uint32_t first_index = 0;
  std::uint32_t job_count = 0;
  std::string request_digest;
};

struct UnfinishedJob {
  JobId job;
  JobSpec spec;
  std::optional<WallTime> accepted_at;   // set if the job has a deadline
  std::optional<ReplayResult> replayed;  // none: unknown, replay it
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
  bool is_over() const { return closed && finished == job_count; }  // nothing about it changes
};

// The clock at which the times of a hardware class are stated: that of the class's first worker.
struct ReferenceClock {
  std::string hardware_class;
  double mhz = 0;
};

// Everything that a coordinator needs to continue where the last one stopped.
struct Recovery {
  std::uint64_t epoch = 1;  // this start's number, already on disk
  Uuid incarnation;         // Store::incarnation()
  std::uint64_t next_batch = 1;
  std::vector<StoredBatch> unfinished;  // batches that are open, or have jobs without an outcome
  std::vector<UnfinishedJob> jobs;      // those jobs, in order
  // Jobs whose row is damaged: what they asked is lost. Each still needs its outcome,
  // STORAGE_CORRUPT.
  std::vector<JobId> damaged;
  std::uint64_t damaged_batches = 0;             // rebuilt or lost when the Store was opened
  std::vector<ReferenceClock> reference_clocks;  // one for each known class
  std::vector<WorkersDrained> drains;            // in force
};

// Whether a read brings the values of jobs that are not timed, up to 512 KiB each. If left out, the
// verdict is an Observed without values.
enum class ObservedValues : std::uint8_t { kRead, kLeftOut };

// How many outcomes one read returns.
struct ReadBounds {
  std::uint32_t max_rows = 0;
  // It ends with the outcome that reaches so many bytes (BytesOf).
  std::size_t max_bytes = std::numeric_limits<std::size_t>::max();
  ObservedValues observed = ObservedValues::kRead;
};

// What a stored measurement has to match to answer a request: the full tuple.
struct ResultKey {
  SubjectKey subject;
  std::string hardware_class;
  CompilerFacts compiler;
  std::uint32_t threads = 1;
  CacheState cache = CacheState::kWarm;
  std::string policy;
  // How good and how new it has to be.
  double precision = 0;  // largest spread accepted; 0: any
  Grade min_grade = Grade::kD;
  WallTime measured_since{};  // oldest measurement accepted; the epoch: any
};

}  // namespace loopfleet::storage
