#pragma once
// Health: the coordinator's answers for /healthz, /livez and /readyz. Written by the event loop,
// read by HTTP threads.

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace loopfleet::coordinator {

class Health {
 public:
  explicit Health(const Clock& clock) : clock_(clock), turned_at_(clock.Now()) {}

  void LoopTurned(Instant now) { turned_at_.store(now, std::memory_order_relaxed); }
  void SetStorageError(std::optional<ErrorKind> trouble) {  // see StorageThread::trouble()
    trouble_.store(trouble, std::memory_order_relaxed);
  }
  void Stopping() { stopping_.store(true, std::memory_order_relaxed); }

  std::vector<std::string> Reasons() const;  // why it is unhealthy; empty: healthy
  // Why it accepts no batches, though it may be healthy.
  std::vector<std::string> NotReadyReason() const;
  // Why only a restart helps: the event loop hangs. A full disk is not such a reason.
  std::vector<std::string> StuckReason() const;
  bool IsTurning() const { return StuckReason().empty(); }

 private:
  Nanos SinceLastTurn() const;

  const Clock& clock_;
  std::atomic<Instant> turned_at_;
  std::atomic<std::optional<ErrorKind>> trouble_{};
  std::atomic<bool> stopping_{false};
};

}  // namespace loopfleet::coordinator
