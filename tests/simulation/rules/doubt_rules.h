#pragma once
// DoubtRules: checks from outside which jobs workers in quarantine get, and what becomes of their
// figures. A part of the checker; it shares no code with the core.

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
  // Also true if the worker reported steady canaries before min_drift was over: it may still be in
  // quarantine.
  bool MayBeInQuarantine(const Uuid& worker) const { return drifts_since_.contains(worker); }
  // The worker holds this lease now.
  void Has(const Uuid& worker, LeaseId lease);

  // A broken rule; nullopt: none.
  using Broken = std::optional<std::string>;
  // `could_run`: the name of another connected worker, not in quarantine, that could run the job;
  // "": none.
  Broken Granted(const wire::Lease& lease, const wire::WorkerHello& worker,
                 const std::string& could_run);
  // Checks an outcome that shows what was reported under this lease.
  Broken Measured(const Outcome& outcome, LeaseId lease);
  Broken WillSuspect(const storage::ResultsSuspected& suspected) const;

 private:
  struct Doubted {
    Uuid worker;
    bool is_told = false;  // an outcome shows its figure
  };

  const FaultMix& mix_;
  std::map<Uuid, Instant> drifts_since_;
  std::set<Uuid> early_steady_;  // of these, reported steady before Limits::min_drift was over
  // Leases of workers in quarantine. A restart of the coordinator keeps only those with an outcome.
  std::map<LeaseId, Doubted> doubted_;
  std::set<std::string> drifted_;  // names; unique to each life of a worker
};

}  // namespace loopfleet::simulation
