#pragma once
// JobTable: every job that is accepted, on disk, and has no outcome yet.
//
// Invariant: a job is here exactly from the moment its acceptance is durable until its outcome is
// made. It is in one of four states, which the other tables agree with: Queued (in the ReadyQueue),
// Leased (under a running lease of the LeaseTable), Following (a follower in the
// SingleFlightTable), Retrying (in the RetryTable).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/failure.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "common/job/outcome.h"
#include "common/looptree/tree/key.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/core/rules/worker_kind.h"
#include "coordinator/core/tables/ready_queue.h"
#include "coordinator/core/tables/retry_table.h"
#include "coordinator/core/tables/single_flight_table.h"

namespace loopfleet::coordinator {

struct Queued {
  ReadyQueue::Place place;
};
struct Leased {
  LeaseId lease;
};
struct Following {};
struct Retrying {
  RetryTable::Order order = 0;
};
using JobProgress = std::variant<Following, Queued, Leased, Retrying>;

// An attempt that ended with a failure which is not the job's outcome (retry.h).
struct FailedAttempt {
  Uuid worker;
  LeaseId lease;
  FailureCode code = FailureCode::kWorkerCrashed;
  storage::Witness witness;
  WorkerKind kind;        // what the witness speaks for
  bool in_doubt = false;  // the worker was in quarantine
};
// The failure reported first, kept while a second verdict is sought.
struct FirstVerdict {
  Evaluation evaluation;
  std::string worker;
  std::string hardware_class;
  std::string host;
  std::string doubt;  // as in Ending
};

// Whether the job takes part in coalescing: `fresh` ones neither lead nor follow.
enum class Sharing : std::uint8_t { kShares, kAlone };

struct Job {
  JobId id;
  JobSpec spec;
  SubjectKey subject;
  std::optional<ProgramKey> program = std::nullopt;  // as in ResolvedTask
  Placement placement = Placement::kCpu;
  std::uint64_t flop_count = 0;  // as in ResolvedTask
  Sharing sharing = Sharing::kShares;
  bool is_recovered = false;  // accepted before this run: a worker may hold a lease of then
  Instant accepted_at{};
  Instant expires_at = Instant::max();  // EXPIRED from then on; max: no deadline
  // Leases granted, except those returned without a run; at most Limits::max_attempts.
  std::vector<LeaseId> counted;
  std::uint32_t attempts() const { return static_cast<std::uint32_t>(counted.size()); }
  // Counted leases that ended with the loss of their worker. After the first one it runs alone
  // (retry_table.h).
  std::uint32_t losses = 0;
  std::uint32_t unseen_losses = 0;  // leases lost without having been seen to arrive
  JobProgress progress;
  std::vector<FailedAttempt> failed_attempts;  // at most Limits::max_attempts
  std::shared_ptr<const FirstVerdict> first_verdict;
};

Question QuestionOf(const JobSpec& spec, const ResolvedTask& admission);
Question QuestionOf(const Job& job);
ResolvedTask ToMeasureOf(const Job& job);

class JobTable {
 public:
  Job& Add(Job&& job);
  Job* Find(JobId id);
  const Job* Find(JobId id) const;
  Job& At(JobId id);   // must exist
  Job Take(JobId id);  // removes it from the table
  std::size_t size() const { return jobs_.size(); }

  // For CheckInvariants: in no particular order.
  template <class Visit>
  void ForEachUnordered(const Visit& visit) const {
    for (const auto& [id, job] : jobs_) visit(job);
  }

 private:
  std::unordered_map<JobId, Job> jobs_;  // looked up, never iterated by transitions
};

}  // namespace loopfleet::coordinator
