#pragma once
// QueueRules: whose turn it was, and who may run what, judged by what outsiders see. A part of the
// checker; like it, it shares no code with the core. Only such jobs are judged whose place in the
// queue an outsider can know: measured anew (so that they follow nobody), for any CPU worker,
// without a deadline, accepted in this life of the coordinator and not long ago, and not leased
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
  // The coordinator writes these down: they are accepted at this moment if they get there.
  void WillAccept(Instant now, const storage::JobsAccepted& accepted);
  void Accepted(Instant now, JobId first, std::uint32_t count);  // and said so
  void CancelHeard(BatchId batch);
  // Something befell this worker for which its affinities may move to another.
  void Trouble(const Uuid& worker) { ++troubles_[worker]; }

  // A broken rule, if there is one.
  using Broken = std::optional<std::string>;
  // What a worker in quarantine has binds no affinity to it.
  enum class Binds : bool { kNothing, kAffinity };
  // `is_silent`: whether a worker has not been heard for long enough to be given up.
  template <class IsSilent>
  Broken Granted(Instant now, const wire::Lease& lease, const wire::WorkerHello& worker,
                 Binds binds, const IsSilent& is_silent) {
    if (Broken broken = OutOfTurn(now)) return broken;
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
    TookItsTurn(now, lease, worker, binds);
    return std::nullopt;
  }
  // Of leases of an earlier moment. Those of one moment are sent worker by worker, and their ids
  // tell in which order they were given out.
  Broken OutOfTurn(Instant now) const;
  Broken Finished(const Outcome& outcome, const JobSpec& spec) const;
  // The coordinator writes it down. `takes_jobs`: whether a worker is neither drained nor drifting.
  using Is = std::function<bool(const Uuid&)>;
  Broken WillFinish(const Outcome& outcome, const Is& is_silent, const Is& takes_jobs);
  void Greeted(const wire::WorkerHello& worker) { workers_[worker.name] = worker.worker; }
  // Whether EXPIRED is what the job's own deadline says.
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
    // Jobs that each other client was granted since, while this one's had none at all.
    std::map<Uuid, std::uint32_t> others;
  };
  // A lease that went before a waiting job, which may have been leased at the same moment before.
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
  void TookItsTurn(Instant now, const wire::Lease& lease, const wire::WorkerHello& worker,
                   Binds binds);
  bool IsPlain(const JobSpec& spec) const;

  const FaultMix& mix_;
  std::map<JobId, Accepting> accepting_;
  std::map<JobId, JobSpec> specs_;      // of those that may wait
  std::map<JobId, std::string> bound_;  // jobs with an affinity
  std::map<JobId, Waiting> waiting_;
  std::vector<Suspicion> suspicions_;
  std::set<Uuid> served_;  // clients that were granted something in this life
  std::map<std::string, Bound> affinities_;
  std::map<std::string, Uuid> workers_;  // by name
  std::map<Uuid, std::uint64_t> troubles_;
};

}  // namespace loopfleet::simulation
