#pragma once
// Health: what /healthz and /readyz say of the coordinator. Written by the event loop, read by HTTP
// threads.

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
  void StorageHas(std::optional<ErrorKind> trouble) {  // see StorageThread::trouble()
    trouble_.store(trouble, std::memory_order_relaxed);
  }
  void Stopping() { stopping_.store(true, std::memory_order_relaxed); }

  std::vector<std::string> Reasons() const;  // why it is not healthy; empty if it is
  // Why it takes no batches though it may be healthy.
  std::vector<std::string> WhyNotReady() const;
  bool IsTurning() const;  // false: its loop stands still, and only a new start helps

 private:
  Nanos SinceLastTurn() const;

  const Clock& clock_;
  std::atomic<Instant> turned_at_;
  std::atomic<std::optional<ErrorKind>> trouble_{};
  std::atomic<bool> stopping_{false};
};

}  // namespace loopfleet::coordinator
