#include "coordinator/shell/fleet_snapshot.h"

#include <chrono>
#include <utility>

#include "coordinator/core/handlers/show_fleet.h"

namespace loopfleet::coordinator {

FleetSnapshot SnapshotOf(const Core& core, const FleetStatus& status, const Tally& tally,
                         Moment now) {
  const State& state = core.state();
  FleetSnapshot snapshot{.at = now,
                         .coordinator = state.name,
                         .fleet = FleetModelOf(state, now),
                         .undurable_outcomes = state.commits.undurable_outcomes(),
                         .tally = tally,
                         .steps = status.steps()};
  status.AddTo(snapshot.fleet);
  if (now.instant < state.grants_from) {
    snapshot.returning_ms = static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(state.grants_from - now.instant)
            .count());
  }
  snapshot.drains.reserve(state.drains.size());
  for (const auto& [target, drain] : state.drains) {
    snapshot.drains.push_back(
        {.target = target, .reason = drain.reason, .by = drain.by, .since = drain.since});
  }
  return snapshot;
}

void SnapshotBoard::Show(FleetSnapshot snapshot) {
  next_ = snapshot.at.instant + kPeriod;
  auto shared = std::make_shared<const FleetSnapshot>(std::move(snapshot));
  const std::lock_guard lock(mutex_);
  newest_.swap(shared);  // the old snapshot is freed after the lock is released
}

std::shared_ptr<const FleetSnapshot> SnapshotBoard::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

}  // namespace loopfleet::coordinator
