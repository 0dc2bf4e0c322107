#include "tests/simulation/rules/doubt_rules.h"

namespace loopfleet::simulation {

void DoubtRules::Heard(Instant now, const Uuid& worker, const wire::Heartbeat& heartbeat) {
  if (heartbeat.canary == wire::CanaryState::kSteady) {
    const auto since = drifts_since_.find(worker);
    if (since == drifts_since_.end()) return;
    if (now - since->second < mix_.limits.min_drift) {
      early_steady_.insert(worker);  // not believed: if it drifts again, it has since then
    } else {
      drifts_since_.erase(since);
      early_steady_.erase(worker);
    }
  } else {
    early_steady_.erase(worker);
    drifts_since_.try_emplace(worker, now);
  }
}

bool DoubtRules::DriftsForLong(Instant now, const Uuid& worker) const {
  const auto since = drifts_since_.find(worker);
  return since != drifts_since_.end() && now - since->second >= mix_.limits.drift_patience;
}

DoubtRules::Broken DoubtRules::Granted(Instant now, const wire::Lease& lease,
                                       const wire::WorkerHello& worker,
                                       const std::string& could_run) {
  if (!Drifts(worker.worker)) return std::nullopt;
  if (!DriftsForLong(now, worker.worker)) {
    return fmt::format("job {} goes to {}, which drifts since a moment ago", lease.job,
                       worker.name);
  }
  if (!could_run.empty()) {
    return fmt::format("job {} goes to {}, which drifts, and {} could run it", lease.job,
                       worker.name, could_run);
  }
  lent_.insert(lease.lease);
  return std::nullopt;
}

DoubtRules::Broken DoubtRules::Measured(const Outcome& outcome, LeaseId lease) const {
  if (!lent_.contains(lease)) return std::nullopt;
  if (outcome.source == OutcomeSource::kStored) {
    return fmt::format("job {} is answered with what was measured in quarantine", outcome.job);
  }
  if (outcome.evaluation.measurement().grade != Grade::kC) {
    return fmt::format("job {} has a grade {} from quarantine", outcome.job,
                       GradeName(outcome.evaluation.measurement().grade));
  }
  return std::nullopt;
}

}  // namespace loopfleet::simulation
