#pragma once
// Liveness: tells observers whether a loop is still running. Safe from any thread. Nothing is sent:
// the heartbeats to the coordinator are protocol.h.

#include <atomic>

#include "common/base/clock.h"

namespace loopfleet::worker {

class Liveness {
 public:
  explicit Liveness(const Clock& clock) : clock_(clock) { Beat(); }

  void Beat() { last_ns_ = NowNs(); }
  Nanos SinceLastBeat() const { return Nanos(NowNs() - last_ns_); }

 private:
  std::int64_t NowNs() const { return clock_.Now().time_since_epoch().count(); }

  const Clock& clock_;
  std::atomic<std::int64_t> last_ns_{0};
};

}  // namespace loopfleet::worker
