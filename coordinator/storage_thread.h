#pragma once
// StorageThread: writes what the core wants on disk, as much as has gathered in one transaction
// (group commit), and tells the event loop.
//
// When the disk has no room, or fails, what may be refused is refused, at once and for as long as
// that lasts; the rest is kept, in order, and tried again until it works. So writes reach the disk
// in the order of their tokens, but for the refused ones.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/wire/socket.h"
#include "coordinator/effect.h"
#include "coordinator/event.h"
#include "monitoring/metrics.h"
#include "storage/store.h"

namespace loopfleet::coordinator {

class StorageThread {
 public:
  // `done` is signalled whenever there is something to take.
  StorageThread(storage::Store& store, monitoring::CoordinatorMetrics& metrics, const Clock& clock,
                wire::Wakeup& done);
  ~StorageThread();  // drops what is not written yet: let it finish first
  StorageThread(const StorageThread&) = delete;
  StorageThread& operator=(const StorageThread&) = delete;

  // Waits while kMaxWaiting are waiting; that bounds what a burst can pile up.
  void Write(Persist persist);

  // Persisted and PersistRefused, in order.
  std::vector<Event> TakeEvents();
  // Why it stopped for good: the database is damaged, or somebody else's.
  std::optional<Error> fatal() const;
  // No room: it keeps trying. Any thread.
  bool is_full() const { return full_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kMaxWaiting = 65'536;        // Persists
  static constexpr std::size_t kMaxRowsPerCommit = 20'000;  // about 0.2 s
  static constexpr auto kRetryPause = std::chrono::milliseconds(100);

  void Run();
  // Writes the backlog from its front; true if it is empty afterwards.
  bool WriteBacklog();
  Status Apply(std::span<Persist> group);
  void RefuseWhatMayBe(const Error& error);
  void Tell(std::vector<Event> events);

  storage::Store& store_;
  monitoring::CoordinatorMetrics& metrics_;
  const Clock& clock_;
  wire::Wakeup& done_;

  BoundedQueue<Persist> queue_{kMaxWaiting};
  std::vector<Persist> backlog_;  // the thread's own
  std::atomic<bool> full_{false};
  std::atomic<bool> stopping_{false};

  mutable std::mutex mutex_;
  std::vector<Event> events_;   // guarded by mutex_
  std::optional<Error> fatal_;  // guarded by mutex_

  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace loopfleet::coordinator
