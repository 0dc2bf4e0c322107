#pragma once
// FleetSnapshot: the fleet at one moment, with what only the page shows, so that readers never
// block the event loop. SnapshotBoard: holds the newest snapshot, which the event loop puts there
// and any thread may take. For the page, /healthz and the metrics.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/fleet/fleet_model.h"
#include "common/wire/message.h"
#include "coordinator/core/core.h"
#include "coordinator/shell/fleet_status.h"
#include "coordinator/shell/identity.h"
#include "coordinator/shell/job_steps.h"
#include "coordinator/shell/tally.h"

namespace loopfleet::coordinator {

struct FleetSnapshot {
  Moment at;
  std::string coordinator;
  FleetModel fleet;
  std::uint32_t returning_ms = 0;   // how long it still waits for its workers to return
  std::vector<wire::Drain> drains;  // standing, with or without a worker of that name
  std::shared_ptr<const ClientNames> client_names;  // null: no keys
  std::size_t undurable_outcomes = 0;
  Tally tally;
  JobSteps steps;
};

FleetSnapshot SnapshotOf(const Core& core, const FleetStatus& status, const Tally& tally,
                         Moment now);

class SnapshotBoard {
 public:
  // ---- called by the event loop
  static constexpr std::chrono::milliseconds kPeriod{500};
  bool IsDue(Instant now) const { return now >= next_; }
  void Show(FleetSnapshot snapshot);

  // ---- called by any thread
  std::shared_ptr<const FleetSnapshot> newest() const;  // null before the first Show

 private:
  Instant next_{};
  mutable std::mutex mutex_;
  std::shared_ptr<const FleetSnapshot> newest_;  // guarded by mutex_
};

}  // namespace loopfleet::coordinator
