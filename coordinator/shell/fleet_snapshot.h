#pragma once
// FleetSnapshot: a copy of the core's view of the fleet at one moment, so that readers never block
// the event loop. SnapshotBoard: holds the newest snapshot, which the event loop puts there and any
// thread may take. For the page; `loopfleet status` reads FleetStatus (fleet_status.h).

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/wire/message.h"
#include "coordinator/core/core.h"
#include "coordinator/shell/tally.h"

namespace loopfleet::coordinator {

struct FleetSnapshot {
  Moment at;
  std::string coordinator;
  std::uint64_t epoch = 0;
  bool is_draining = false;        // the coordinator is shutting down
  std::uint32_t returning_ms = 0;  // how long it still waits for its workers to return
  std::vector<wire::WorkerInfo> workers;
  std::vector<wire::Drain> drains;      // standing, with or without a worker of that name
  std::array<std::size_t, 3> queued{};  // by Placement
  std::size_t leased = 0;
  std::size_t running_batches = 0;    // unfinished batches
  std::vector<std::string> unserved;  // why jobs are unschedulable; the first few reasons
  std::size_t undurable_outcomes = 0;
  Tally tally;
};

// Cost: a copy of each worker's facts, and one check per demand of the waiting jobs.
FleetSnapshot SnapshotOf(const Core& core, const Tally& tally, Moment now);

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
