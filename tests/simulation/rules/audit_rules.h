#pragma once
// AuditRules: who repeats a measurement, and who is put away for what he measured, judged by what
// outsiders see. A part of the checker; like it, it shares no code with the core.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/looptree/tree/key.h"
#include "common/wire/message.h"
#include "storage/record.h"
#include "tests/simulation/fault_mix.h"

namespace loopfleet::simulation {

class AuditRules {
 public:
  explicit AuditRules(const FaultMix& mix) : mix_(mix) {}

  void Started();
  void Cheats(const std::string& worker) { cheats_.insert(worker); }
  void Drifts(const std::string& worker) { drifted_.insert(worker); }
  void Measured(const looptree::TreeKey& tree, const Uuid& worker) {
    measured_by_[tree].insert(worker);
  }
  void WillAccept(const storage::JobsAccepted& accepted);

  // A broken rule, if there is one.
  using Broken = std::optional<std::string>;
  Broken WillSuspect(const storage::ResultsSuspected& suspected);
  Broken Granted(const wire::Lease& lease, const looptree::TreeKey& tree,
                 const wire::WorkerHello& worker) const;

 private:
  const FaultMix& mix_;
  // By name, which each life of a worker has of its own.
  std::set<std::string> cheats_;
  std::set<std::string> drifted_;
  std::set<std::string> convicted_;  // since the coordinator started
  std::map<looptree::TreeKey, std::set<Uuid>> measured_by_;
  // Of batches of the coordinator's own, since it started: after a restart they are as any other.
  std::set<JobId> own_;
};

}  // namespace loopfleet::simulation
