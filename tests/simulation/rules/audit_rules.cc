#include "tests/simulation/rules/audit_rules.h"

#include <fmt/format.h>

namespace loopfleet::simulation {

void AuditRules::Started() {
  convicted_.clear();
  own_.clear();
}

void AuditRules::WillAccept(const storage::JobsAccepted& accepted) {
  if (!accepted.client.is_nil()) return;
  for (std::uint32_t i = 0; i < accepted.jobs.size(); ++i) {
    own_.insert({.batch = accepted.batch, .index = accepted.first_index + i});
  }
}

AuditRules::Broken AuditRules::WillSuspect(const storage::ResultsSuspected& suspected) {
  if (cheats_.contains(suspected.worker)) {
    convicted_.insert(suspected.worker);
  } else if (!drifted_.contains(suspected.worker)) {
    return fmt::format("{} measured as the others did, and is suspected: {}", suspected.worker,
                       suspected.reason);
  }
  return std::nullopt;
}

AuditRules::Broken AuditRules::Granted(const wire::Lease& lease, const looptree::TreeKey& tree,
                                       const wire::WorkerHello& worker) const {
  // An operator's word ends a quarantine, and what is measured again after a drift is no audit.
  if (mix_[Fault::kOperator] > 0 || mix_[Fault::kDriftWorker] > 0) return std::nullopt;
  if (convicted_.contains(worker.name)) {
    return fmt::format("job {} goes to {}, which was convicted", lease.job, worker.name);
  }
  // A job that failed is tried again by whoever is there.
  if (lease.attempt > 1 || !own_.contains(lease.job)) return std::nullopt;
  const auto measured = measured_by_.find(tree);
  if (measured == measured_by_.end() || measured->second != std::set{worker.worker}) {
    return std::nullopt;
  }
  return fmt::format("job {} goes to {}, whose own figure it audits", lease.job, worker.name);
}

}  // namespace loopfleet::simulation
