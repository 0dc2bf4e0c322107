#pragma once
// DoubtRules: what workers in quarantine may have, and what becomes of their figures, judged by
// what outsiders see. A part of the checker; like it, it shares no code with the core.

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/wire/message.h"
#include "tests/simulation/fault_mix.h"

namespace loopfleet::simulation {

class DoubtRules {
 public:
  explicit DoubtRules(const FaultMix& mix) : mix_(mix) {}

  void Started() {
    drifts_since_.clear();
    early_steady_.clear();
  }
  void Heard(Instant now, const Uuid& worker, const wire::Heartbeat& heartbeat);
  void Forget(const Uuid& worker) {
    drifts_since_.erase(worker);
    early_steady_.erase(worker);
  }
  bool Drifts(const Uuid& worker) const {
    return drifts_since_.contains(worker) && !early_steady_.contains(worker);
  }
  // Or said that it is steady sooner than it is believed to be: it may be in quarantine yet.
  bool MayDrift(const Uuid& worker) const { return drifts_since_.contains(worker); }
  // Since long enough to be lent jobs.
  bool DriftsForLong(Instant now, const Uuid& worker) const;

  // A broken rule, if there is one.
  using Broken = std::optional<std::string>;
  // `could_run`: the name of another worker that is there for such a job and is not in quarantine
  // for long; "" if there is none.
  Broken Granted(Instant now, const wire::Lease& lease, const wire::WorkerHello& worker,
                 const std::string& could_run);
  // An outcome that repeats what was reported under this lease.
  Broken Measured(const Outcome& outcome, LeaseId lease) const;

 private:
  const FaultMix& mix_;
  std::map<Uuid, Instant> drifts_since_;
  std::set<Uuid> early_steady_;  // of these, who said so before Limits::min_drift was over
  std::set<LeaseId> lent_;       // also before the coordinator started anew
};

}  // namespace loopfleet::simulation
