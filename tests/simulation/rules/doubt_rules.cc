#include "tests/simulation/rules/doubt_rules.h"

namespace loopfleet::simulation {

void DoubtRules::Started() {
  drifts_since_.clear();
  early_steady_.clear();
  std::erase_if(doubted_, [](const auto& entry) { return !entry.second.is_told; });
}

void DoubtRules::Heard(Instant now, const wire::WorkerHello& worker,
                       const wire::Heartbeat& heartbeat) {
  const Uuid& id = worker.worker;
  if (heartbeat.canary == wire::CanaryState::kSteady) {
    const auto since = drifts_since_.find(id);
    if (since == drifts_since_.end()) return;
    if (now - since->second < mix_.limits.min_drift) {
      early_steady_.insert(id);  // ignored: a later drift counts from the old time
    } else {
      drifts_since_.erase(since);
      early_steady_.erase(id);
    }
  } else {
    early_steady_.erase(id);
    drifts_since_.try_emplace(id, now);
    drifted_.insert(worker.name);
  }
}

void DoubtRules::Forget(const Uuid& worker) {
  drifts_since_.erase(worker);
  early_steady_.erase(worker);
  std::erase_if(doubted_, [&](const auto& entry) {
    return entry.second.worker == worker && !entry.second.is_told;
  });
}

void DoubtRules::Has(const Uuid& worker, LeaseId lease) {
  if (Drifts(worker)) doubted_.try_emplace(lease, Doubted{.worker = worker});
}

DoubtRules::Broken DoubtRules::Granted(const wire::Lease& lease, const wire::WorkerHello& worker,
                                       const std::string& could_run) {
  if (!Drifts(worker.worker)) return std::nullopt;
  if (!could_run.empty()) {
    return fmt::format("job {} goes to {}, which drifts, and {} could run it", lease.job,
                       worker.name, could_run);
  }
  Has(worker.worker, lease.lease);
  return std::nullopt;
}

DoubtRules::Broken DoubtRules::Measured(const Outcome& outcome, LeaseId lease) {
  const auto doubted = doubted_.find(lease);
  if (doubted == doubted_.end()) return std::nullopt;
  doubted->second.is_told = true;
  if (outcome.source == OutcomeSource::kStored) {
    return fmt::format("job {} is answered with what was measured in quarantine", outcome.job);
  }
  if (outcome.evaluation.measurement().grade < Grade::kC) {
    return fmt::format("job {} has a grade {} from quarantine", outcome.job,
                       EnumName(outcome.evaluation.measurement().grade));
  }
  return std::nullopt;
}

DoubtRules::Broken DoubtRules::WillSuspect(const storage::ResultsSuspected& suspected) const {
  if (drifted_.contains(suspected.worker)) return std::nullopt;
  return fmt::format("{} never drifted, and is suspected: {}", suspected.worker, suspected.reason);
}

}  // namespace loopfleet::simulation
