#pragma once
// StorageThread: writes the core's Persist effects to disk, many in one transaction (group commit),
// and reports to the event loop. The WriteBacklog decides which writes share a transaction, and
// which are refused when the disk is full or fails (write_backlog.h). Public methods are for the
// event loop's thread, except as noted.

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
#include "coordinator/shell/retention.h"
#include "coordinator/shell/write_backlog.h"
#include "monitoring/metrics.h"
#include "storage/store.h"

namespace loopfleet::coordinator {

class StorageThread {
 public:
  // `done` is signalled when there are events to take. `keep`: what is deleted when it is old
  // (retention.h).
  StorageThread(storage::Store& store, monitoring::CoordinatorMetrics& metrics, const Clock& clock,
                wire::Wakeup& done, const Keep& keep = {});
  ~StorageThread();  // drops unwritten work: let it finish first
  StorageThread(const StorageThread&) = delete;
  StorageThread& operator=(const StorageThread&) = delete;

  // Blocks while kMaxWaiting are queued, which bounds the backlog of a burst.
  void Write(Persist persist);

  // Persisted and PersistRefused, in order. Frees what was written: it costs less where it was
  // allocated.
  std::vector<Event> TakeEvents();
  // Why it stopped for good: the database is damaged, or has a newer writer.
  std::optional<Error> fatal() const;
  // Why nothing can be written now; it keeps trying. kFull: the disk is full; kUnavailable: another
  // process holds the file; kSystem: the disk fails, or may not be written to. Any thread.
  std::optional<ErrorKind> trouble() const;

 private:
  static constexpr std::size_t kMaxWaiting = 65'536;  // Persists
  static constexpr auto kRetryPause = std::chrono::milliseconds(100);

  void Run();
  // The next writes. Empty: none came within a short time, or the queue is closed.
  std::vector<Persist> Await();
  void FlagMore();
  void StepRetention();
  // True if the backlog is empty afterwards.
  bool FlushBacklog();
  void GiveUp(const Error& error);
  void NoteTrouble(const Error& error);
  void NoteSuccess();
  void Tell(std::vector<Event> events, std::vector<Persist> written = {});

  storage::Store& store_;
  monitoring::CoordinatorMetrics& metrics_;
  const Clock& clock_;
  wire::Wakeup& done_;

  BoundedQueue<Persist> queue_{kMaxWaiting};
  WriteBacklog backlog_;  // used by the thread only
  Retention retention_;   // used by the thread only
  Instant flag_at_{};     // used by the thread only: no sooner after an error
  std::atomic<bool> stopping_{false};

  mutable std::mutex mutex_;
  std::vector<Event> events_;         // guarded by mutex_
  std::vector<Persist> written_;      // guarded by mutex_; to be freed
  std::optional<Error> fatal_;        // guarded by mutex_
  std::optional<ErrorKind> trouble_;  // guarded by mutex_

  std::thread thread_;  // last: starts when everything else is there
};

}  // namespace loopfleet::coordinator
