#pragma once
// StorageThread: writes what the core wants on disk, as much as has gathered in one transaction
// (group commit), and tells the event loop. What shares a transaction, and what is refused when the
// disk has no room, or fails, is the WriteBacklog's to decide (write_backlog.h).

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/wire/transport/wakeup.h"
#include "coordinator/core/contract/effect.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/shell/sample_retention.h"
#include "coordinator/shell/write_backlog.h"
#include "monitoring/metrics.h"
#include "storage/store.h"

namespace loopfleet::coordinator {

class StorageThread {
 public:
  // `done` is signalled whenever there is something to take. `keep_samples`: how long raw samples
  // are kept (sample_retention.h); zero: for ever.
  StorageThread(storage::Store& store, monitoring::CoordinatorMetrics& metrics, const Clock& clock,
                wire::Wakeup& done, std::chrono::days keep_samples = std::chrono::days(0));
  ~StorageThread();  // drops what is not written yet: let it finish first
  StorageThread(const StorageThread&) = delete;
  StorageThread& operator=(const StorageThread&) = delete;

  // Waits while kMaxWaiting are waiting; that bounds what a burst can pile up.
  void Write(Persist persist);

  // Persisted and PersistRefused, in order.
  std::vector<Event> TakeEvents();
  // Why it stopped for good: the database is damaged, or somebody else's.
  std::optional<Error> fatal() const;
  // Why nothing can be written now; it keeps trying. kFull: no room; kUnavailable: somebody else
  // holds the file; kSystem: the disk fails, or may not be written to. Any thread.
  std::optional<ErrorKind> trouble() const;

 private:
  static constexpr std::size_t kMaxWaiting = 65'536;  // Persists
  static constexpr auto kRetryPause = std::chrono::milliseconds(100);

  void Run();
  // What there is to write. Empty: a moment has passed without, or the queue is closed.
  std::vector<Persist> Await();
  void ThinSamples();
  // True if the backlog is empty afterwards.
  bool WriteBacklogOff();
  void NoteTrouble(const Error& error);
  void NoteSuccess();
  void Tell(std::vector<Event> events);

  storage::Store& store_;
  monitoring::CoordinatorMetrics& metrics_;
  const Clock& clock_;
  wire::Wakeup& done_;

  BoundedQueue<Persist> queue_{kMaxWaiting};
  WriteBacklog backlog_;       // the thread's own
  SampleRetention retention_;  // the thread's own
  std::atomic<bool> stopping_{false};

  mutable std::mutex mutex_;
  std::vector<Event> events_;         // guarded by mutex_
  std::optional<Error> fatal_;        // guarded by mutex_
  std::optional<ErrorKind> trouble_;  // guarded by mutex_

  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace loopfleet::coordinator
