#pragma once
// JobResolver: what has to be known about a job before it is accepted. Is it valid, what tree is it
// about, where may it run, is its answer stored? An invalid job is not refused: it gets its failure
// as its outcome, and the others of its batch run.
//
// Replaying is the same everywhere (looptree::Replay), so what it says about a request is
// remembered.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/job/job_spec.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/core/state/state.h"
#include "coordinator/shell/log_rate_limit.h"
#include "monitoring/metrics.h"
#include "storage/store_reader.h"

namespace loopfleet::coordinator {

// Under which conditions a stored result answers: those of the workers of now that may run the job.
// One that has an affinity is answered only by what its worker measured; if it has none yet, by
// what any worker measured that is there, which becomes its worker (BindStored in
// queueing.h). Of one message.
class StoredConditions {
 public:
  StoredConditions() = default;  // nobody is there: nothing is looked up
  explicit StoredConditions(const State& state) : state_(&state) {}

  const std::vector<WorkerKind>& KindsFor(const JobSpec& spec, Placement placement) const;
  bool Accepts(const JobSpec& spec, Placement placement, const storage::StoredResult& result) const;

 private:
  const State* state_ = nullptr;
  mutable std::map<Demand, std::vector<WorkerKind>> kinds_;  // as far as they were asked for
  mutable std::map<std::string, std::string> answered_by_;   // affinities that got a worker here
};

// Remembers what a request's content replays to. Bounded: when a generation is full, the one before
// it is forgotten. Content is compared in full, not by its hash.
class ReplayMemory {
 public:
  using Replayed = std::variant<ToMeasure, Failure>;
  explicit ReplayMemory(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  const Replayed& Replay(const JobSpec& spec);
  // What an earlier run of the coordinator found out, and stored, about the job. Its actions are
  // not replayed again; how much its program computes, which is not stored, is that of all its
  // jobs.
  ToMeasure Recall(const storage::ReplayedTo& stored, const JobSpec& spec);

 private:
  using Generation = std::unordered_map<std::string, Replayed>;
  const Replayed& Remember(std::string content, Replayed replayed);

  const std::size_t max_bytes_;  // of one generation, about
  std::size_t bytes_ = 0;
  Generation current_;
  Generation previous_;
};

// One thread's: it reads from storage.
class Admitter {
 public:
  Admitter(storage::StoreReader& reader, monitoring::CoordinatorMetrics& metrics,
           const Clock& clock)
      : reader_(reader), metrics_(metrics), clock_(clock) {}

  AdmittedJob Admit(JobSpec spec, const StoredConditions& conditions);
  // One that an earlier run accepted. No worker is there yet, so nothing is looked up.
  AdmittedJob Readmit(JobSpec spec, const std::optional<storage::ReplayedTo>& stored);

 private:
  storage::StoredAnswer Lookup(const JobSpec& spec, const ToMeasure& measure,
                               const StoredConditions& conditions);  // none: null

  static constexpr std::size_t kMemoryBytes = std::size_t{16} << 20;
  storage::StoreReader& reader_;
  monitoring::CoordinatorMetrics& metrics_;
  const Clock& clock_;
  ReplayMemory memory_{kMemoryBytes};
  LogRateLimit lookup_log_;
};

}  // namespace loopfleet::coordinator
