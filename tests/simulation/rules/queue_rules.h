#pragma once
// QueueRules: checks the dispatch order and the placement of jobs from outside. A part of the
// checker; it shares no code with the core. The order is checked only for jobs whose place in the
// queue an outsider can know: measured fresh (so that they follow no equal job), for any CPU
// worker, without a deadline, accepted recently in this life of the coordinator, and not leased
// before.

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/wire/message.h"
#include "storage/record.h"
#include "tests/simulation/fault_mix.h"

namespace loopfleet::simulation {

class QueueRules {
 public:
  explicit QueueRules(const FaultMix& mix) : mix_(mix) {}

  void Started();
  // The coordinator writes these jobs: they are accepted now if they reach the disk.
  void WillAccept(Instant now, const storage::JobsAccepted& accepted);
  void Accepted(Instant now, JobId first, std::uint32_t count);  // the client was answered
  void CancelHeard(BatchId batch);
  // An event after which this worker's affinities may move to another.
  void Trouble(const Uuid& worker) { ++troubles_[worker]; }

  // A broken rule; nullopt: none.
  using Broken = std::optional<std::string>;
  // kNothing: jobs of a worker in quarantine bind no affinity to it.
  enum class Binds : bool { kNothing, kAffinity };
  // `is_silent`: whether a worker has been silent for long enough to be lost.
  template <class IsSilent>
  Broken Granted(Instant now, const wire::Lease& lease, const wire::WorkerHello& worker,
                 Binds binds, const IsSilent& is_silent) {
    if (Broken broken = CheckOrder(now)) return broken;
    if (Broken broken = MayRun(now, lease, worker)) return broken;
    const auto bound = affinities_.find(lease.spec.affinity);
    const bool may_move = bound == affinities_.end() || bound->second.worker == worker.worker ||
                          troubles_[bound->second.worker] != bound->second.troubles ||
                          is_silent(bound->second.worker);
    if (binds == Binds::kNothing) affinities_.erase(lease.spec.affinity);
    if (!lease.spec.affinity.empty() && binds == Binds::kAffinity) {
      if (!may_move) {
        return fmt::format("job {} of affinity '{}' goes to worker {} and not to {}", lease.job,
                           lease.spec.affinity, worker.worker.ToString(),
                           bound->second.worker.ToString());
      }
      affinities_[lease.spec.affinity] = {worker.worker, troubles_[worker.worker]};
    }
    RecordGrant(now, lease, worker, binds);
    return std::nullopt;
  }
  // Checks the leases of earlier moments. Leases of one moment are sent worker by worker, so they
  // are complete only later; their ids give the order in which they were granted.
  Broken CheckOrder(Instant now) const;
  Broken Finished(const Outcome& outcome, const JobSpec& spec) const;
  // The coordinator writes this outcome. `takes_jobs`: whether a worker is neither drained nor
  // drifting.
  using Is = std::function<bool(const Uuid&)>;
  Broken WillFinish(const Outcome& outcome, const Is& is_silent, const Is& takes_jobs);
  void Greeted(const wire::WorkerHello& worker) { workers_[worker.name] = worker.worker; }
  // Whether the job's deadline justifies EXPIRED.
  bool IsOverdue(const Outcome& outcome, const JobSpec& spec) const;

 private:
  struct Accepting {
    Instant at{};
    WallTime wall{};
    Uuid client;
  };
  struct Waiting {
    Uuid client;
    std::int32_t priority = 0;
    Instant since{};
    // Jobs granted to each other client since, while this client has had none.
    std::map<Uuid, std::uint32_t> others;
  };
  // A lease granted before a waiting job. The waiting job may still prove to be leased earlier in
  // the same moment.
  struct Suspicion {
    JobId waiting;
    LeaseId lease;
    Instant at{};
    std::string text;
  };
  struct Bound {
    Uuid worker;
    std::uint64_t troubles = 0;
  };

  Broken MayRun(Instant now, const wire::Lease& lease, const wire::WorkerHello& worker) const;
  void RecordGrant(Instant now, const wire::Lease& lease, const wire::WorkerHello& worker,
                   Binds binds);
  bool IsPlain(const JobSpec& spec) const;

  const FaultMix& mix_;
  std::map<JobId, Accepting> accepting_;
  std::map<JobId, JobSpec> specs_;      // of jobs that may wait
  std::map<JobId, std::string> bound_;  // jobs with an affinity
  std::map<JobId, Waiting> waiting_;
  std::vector<Suspicion> suspicions_;
  std::set<Uuid> served_;  // clients that were granted a job in this life
  std::map<std::string, Bound> affinities_;
  std::map<std::string, Uuid> workers_;  // by name
  std::map<Uuid, std::uint64_t> troubles_;
};

}  // namespace loopfleet::simulation
