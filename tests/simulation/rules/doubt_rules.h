#pragma once
// DoubtRules: what workers in quarantine may have, and what becomes of their figures, judged by
// what outsiders see. A part of the checker; like it, it shares no code with the core.

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/wire/message.h"
#include "storage/record.h"
#include "tests/simulation/fault_mix.h"

namespace loopfleet::simulation {

class DoubtRules {
 public:
  explicit DoubtRules(const FaultMix& mix) : mix_(mix) {}

  void Started();
  void Heard(Instant now, const wire::WorkerHello& worker, const wire::Heartbeat& heartbeat);
  void Forget(const Uuid& worker);
  bool Drifts(const Uuid& worker) const {
    return drifts_since_.contains(worker) && !early_steady_.contains(worker);
  }
  // Or said that it is steady sooner than it is believed to be: it may be in quarantine yet.
  bool MayDrift(const Uuid& worker) const { return drifts_since_.contains(worker); }
  // The worker holds this lease now.
  void Has(const Uuid& worker, LeaseId lease);

  // A broken rule, if there is one.
  using Broken = std::optional<std::string>;
  // `could_run`: the name of another worker that is there for such a job and is not in quarantine;
  // "" if there is none.
  Broken Granted(const wire::Lease& lease, const wire::WorkerHello& worker,
                 const std::string& could_run);
  // An outcome that repeats what was reported under this lease.
  Broken Measured(const Outcome& outcome, LeaseId lease);
  Broken WillSuspect(const storage::ResultsSuspected& suspected) const;

 private:
  struct Doubted {
    Uuid worker;
    bool is_told = false;  // an outcome has it
  };

  const FaultMix& mix_;
  std::map<Uuid, Instant> drifts_since_;
  std::set<Uuid> early_steady_;  // of these, who said so before Limits::min_drift was over
  // Leases of workers in quarantine. A coordinator that starts anew knows of those with an outcome.
  std::map<LeaseId, Doubted> doubted_;
  std::set<std::string> drifted_;  // by name, which each life of a worker has of its own
};

}  // namespace loopfleet::simulation
