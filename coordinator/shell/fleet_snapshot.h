#pragma once
// FleetSnapshot: what the core knows of the fleet at one moment, for people to see: a copy, so that
// looking never keeps the event loop waiting. SnapshotBoard: where the event loop leaves the newest
// one, and others pick it up.

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
  bool is_draining = false;        // the coordinator is going down
  std::uint32_t returning_ms = 0;  // it waits so long for its workers to come back
  std::vector<wire::WorkerInfo> workers;
  std::vector<wire::Drain> drains;      // that stand, with or without a worker of that name
  std::array<std::size_t, 3> queued{};  // by Placement
  std::size_t leased = 0;
  std::size_t running_batches = 0;    // that are not over
  std::vector<std::string> unserved;  // why jobs wait that no worker there can run; the first few
  std::size_t undurable_outcomes = 0;
  Tally tally;
};

// A copy of each worker's facts, and a look at each kind of demand that jobs wait with.
FleetSnapshot SnapshotOf(const Core& core, const Tally& tally, Moment now);

class SnapshotBoard {
 public:
  // ---- the event loop's
  static constexpr std::chrono::milliseconds kPeriod{500};
  bool IsDue(Instant now) const { return now >= next_; }
  void Show(FleetSnapshot snapshot);

  // ---- any thread's
  std::shared_ptr<const FleetSnapshot> newest() const;  // null before the first

 private:
  Instant next_{};
  mutable std::mutex mutex_;
  std::shared_ptr<const FleetSnapshot> newest_;  // guarded by mutex_
};

}  // namespace loopfleet::coordinator
