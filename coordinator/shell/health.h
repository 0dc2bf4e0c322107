#pragma once
// Health: the coordinator's answers for /healthz, /livez and /readyz, and what the page and the
// metrics say needs attention. Written by the event loop, read by HTTP threads.

#include <atomic>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/fleet/attention.h"
#include "coordinator/shell/fleet_snapshot.h"

namespace loopfleet::coordinator {

class Health {
 public:
  Health(const Clock& clock, const SnapshotBoard& board)
      : clock_(clock), board_(board), turned_at_(clock.Now()) {}

  void LoopTurned(Instant now) { turned_at_.store(now, std::memory_order_relaxed); }
  void Stopping() { stopping_.store(true, std::memory_order_relaxed); }

  wire::FleetHealth Now() const;  // of the newest snapshot
  // Why the coordinator itself is unhealthy; empty: it is healthy.
  std::vector<std::string> Reasons() const;
  // Why it accepts no batches, though it may be healthy.
  std::vector<std::string> NotReadyReason() const;
  // Why only a restart helps: the event loop hangs. A full disk is not such a reason.
  std::vector<std::string> StuckReason() const;
  bool IsTurning() const { return StuckReason().empty(); }

 private:
  Nanos SinceLastTurn() const;

  const Clock& clock_;
  const SnapshotBoard& board_;
  std::atomic<Instant> turned_at_;
  std::atomic<bool> stopping_{false};
};

}  // namespace loopfleet::coordinator
