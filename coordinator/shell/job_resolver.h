#pragma once
// Resolves a job before it is accepted: is it valid, which tree does it lead to, where may it run,
// is its answer stored? A stored answer travels with the job, and EnterJob
// (core/dispatch/job_lifecycle.h) ends the job with it. An invalid job is not refused: it gets its
// failure as its outcome, and the other jobs of its batch run.
//
// Replay is deterministic (looptree::Replay), so its results are cached by request.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/job/job_spec.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/core/state/state.h"
#include "coordinator/shell/log_rate_limit.h"
#include "monitoring/metrics.h"
#include "storage/store_reader.h"

namespace loopfleet::coordinator {

// The conditions under which a stored result answers a job: those of the connected workers that may
// run it. A job with a bound affinity is answered only by results of its worker. If the affinity is
// unbound, a result of any connected worker answers, and that worker is bound to it (BindStored in
// queueing.h). Lives for one message.
class StoredConditions {
 public:
  StoredConditions() = default;  // no workers: nothing is looked up
  explicit StoredConditions(const State& state) : state_(&state) {}

  const std::vector<WorkerKind>& KindsFor(const JobSpec& spec, Placement placement) const;
  // Without a placement: whether its affinity allows it, for an answer that was accepted earlier.
  bool Accepts(const JobSpec& spec, std::optional<Placement> placement,
               const storage::StoredResult& result) const;
  // The ready workers of this kind that could get the job.
  std::vector<storage::Witness> CandidatesFor(const JobSpec& spec, Placement placement,
                                              const WorkerKind& kind) const;

 private:
  const State* state_ = nullptr;
  mutable std::map<Demand, std::vector<WorkerKind>> kinds_;  // cache
  // Workers that answered for unbound affinities, which the message will bind to them.
  mutable std::map<std::string, std::string> answered_by_;
};

// What stored results have to match to answer the job: a key for each kind of worker that may run
// it.
std::vector<storage::ResultKey> KeysFor(const JobSpec& spec, const ResolvedTask& measure,
                                        const StoredConditions& conditions, WallTime now);

// Cache from a request's content to its replay result. Bounded: when a generation is full, the
// previous one is dropped. Content is compared in full, not by its hash.
class ReplayMemory {
 public:
  using Replayed = std::variant<ResolvedTask, Failure>;
  explicit ReplayMemory(std::size_t max_bytes = std::size_t{16} << 20) : max_bytes_(max_bytes) {}

  const Replayed& Replay(const JobSpec& spec);
  // The result that an earlier run of the coordinator stored for the job. Its actions are not
  // replayed again. The flop count is not stored; it is that of the program.
  ResolvedTask Recall(const storage::ReplayResult& stored, const JobSpec& spec);

 private:
  using Generation = std::unordered_map<std::string, Replayed>;
  const Replayed& Remember(std::string content, Replayed replayed);

  const std::size_t max_bytes_;  // of one generation, approximate
  std::size_t bytes_ = 0;
  Generation current_;
  Generation previous_;
};

// Admits jobs: validates, replays and looks up stored answers. Reads from storage; used by one
// thread.
class JobResolver {
 public:
  JobResolver(storage::StoreReader& reader, ReplayMemory& memory,
              monitoring::CoordinatorMetrics& metrics, const Clock& clock)
      : reader_(reader), memory_(memory), metrics_(metrics), clock_(clock) {}

  ResolvedJob Resolve(JobSpec spec, const StoredConditions& conditions);
  // Has the jobs of a message measured whose stored answers no longer fit: since they were found,
  // another worker may have taken a job of their affinity. Looks nothing up again: there may be
  // thousands, and this is not done in slices. Measuring is always correct.
  void MeasureStale(std::vector<ResolvedJob>& jobs, const StoredConditions& conditions);
  // For a job that an earlier run accepted. No worker is connected yet, so nothing is looked up.
  ResolvedJob ResolveRecovered(JobSpec spec, const std::optional<storage::ReplayResult>& stored);

 private:
  // Null: none found. Without observed values (storage::ObservedValues).
  storage::StoredAnswer Lookup(const JobSpec& spec, const ResolvedTask& measure,
                               const StoredConditions& conditions);
  void NoteFailed(const Error& error, const SubjectKey& subject);  // a look-up

  storage::StoreReader& reader_;
  ReplayMemory& memory_;
  monitoring::CoordinatorMetrics& metrics_;
  const Clock& clock_;
  LogRateLimit lookup_log_;
};

}  // namespace loopfleet::coordinator
