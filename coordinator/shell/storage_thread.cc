#include "coordinator/shell/storage_thread.h"

#include <algorithm>
#include <utility>

#include "common/base/failpoint.h"
#include "common/base/log.h"

namespace loopfleet::coordinator {
namespace {

// A full or failing disk, or another process that holds the file, may pass with time. Damage, a
// newer writer or a bug does not.
bool MayPass(ErrorKind kind) {
  return kind == ErrorKind::kFull || kind == ErrorKind::kUnavailable || kind == ErrorKind::kSystem;
}

}  // namespace

StorageThread::StorageThread(storage::Store& store, monitoring::CoordinatorMetrics& metrics,
                             const Clock& clock, wire::Wakeup& done, const Keep& keep)
    : store_(store),
      metrics_(metrics),
      clock_(clock),
      done_(done),
      retention_(store, clock, keep),
      thread_([this] { Run(); }) {}

StorageThread::~StorageThread() {
  stopping_ = true;
  queue_.Close();
  thread_.join();
}

void StorageThread::Write(Persist persist) { queue_.Push(std::move(persist)); }

std::vector<Event> StorageThread::TakeEvents() {
  std::vector<Persist> written;  // freed after the mutex
  std::lock_guard lock(mutex_);
  written.swap(written_);
  return std::exchange(events_, {});
}

std::optional<Error> StorageThread::fatal() const {
  std::lock_guard lock(mutex_);
  return fatal_;
}

std::optional<ErrorKind> StorageThread::trouble() const {
  std::lock_guard lock(mutex_);
  return trouble_;
}

void StorageThread::GiveUp(const Error& error) {
  {
    std::lock_guard lock(mutex_);
    fatal_ = error;
  }
  done_.Signal();
}

// Logs once while the kind of error stays the same.
void StorageThread::NoteTrouble(const Error& error) {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(trouble_, error.kind) == error.kind) return;
  }
  switch (error.kind) {
    case ErrorKind::kFull: return log::Warning("storage.no_room reason={}", error.message);
    case ErrorKind::kUnavailable: return log::Warning("storage.held reason={}", error.message);
    default: return log::Error("storage.fails reason={}", error.message);
  }
}

void StorageThread::NoteSuccess() {
  {
    std::lock_guard lock(mutex_);
    if (!std::exchange(trouble_, std::nullopt)) return;
  }
  log::Info("storage.works_again");
}

void StorageThread::Run() {
  while (true) {
    if (backlog_.empty()) {
      std::vector<Persist> fresh = Await();
      if (fresh.empty()) {
        if (queue_.is_closed()) return;
        store_.HasMoreToFlag() ? FlagMore() : StepRetention();
        if (fatal()) return;
        continue;
      }
      for (Persist& persist : fresh) backlog_.Add(std::move(persist));
    } else {
      // The last write failed. New work must not wait for it: it is refused or queued behind.
      while (auto persist = queue_.TryPop()) backlog_.Add(*std::move(persist));
    }
    if (FlushBacklog()) {
      FlagMore();  // between two groups, so that neither waits long for the other
      if (fatal()) return;
      if (retention_.IsDueWhileBusy()) StepRetention();
      continue;
    }
    if (stopping_ || fatal()) return;
    std::this_thread::sleep_for(kRetryPause);
  }
}

std::vector<Persist> StorageThread::Await() {
  if (store_.HasMoreToFlag()) {
    return queue_.PopAllWithin(std::max(Instant::duration::zero(), flag_at_ - clock_.Now()));
  }
  if (!retention_.is_on()) return queue_.PopAll();
  const auto until_due = retention_.due() - clock_.Now();
  return queue_.PopAllWithin(std::max<Instant::duration>(Retention::kIdle, until_due));
}

// Flags the next results that a worker's drift has made suspect.
void StorageThread::FlagMore() {
  if (!store_.HasMoreToFlag() || clock_.Now() < flag_at_) return;
  const Status done = store_.FlagMore();
  if (done) return NoteSuccess();
  if (!MayPass(done.error().kind)) return GiveUp(done.error());
  NoteTrouble(done.error());
  flag_at_ = clock_.Now() + kRetryPause;
}

void StorageThread::StepRetention() {
  // Any cause also hits the next ordinary write, which handles it.
  if (const Status done = retention_.Step(); !done) {
    log::Warning("storage.retention_failed reason={}", done.error().message);
  }
}

bool StorageThread::FlushBacklog() {
  while (!backlog_.empty()) {
    const Instant start = clock_.Now();
    LF_FAILPOINT("coordinator.before_apply");
    const Status applied = store_.Apply(backlog_.StartGroup());
    LF_FAILPOINT("coordinator.after_apply");
    metrics_.DamagedRows(store_.TakeDamagedCount());
    if (applied) {
      metrics_.Committed(clock_.Now() - start, backlog_.rows_of_group());
      NoteSuccess();
      WriteBacklog::Written written = backlog_.Applied();
      Tell(std::move(written.persisted), std::move(written.group));
      continue;
    }
    if (!MayPass(applied.error().kind)) {
      GiveUp(applied.error());
      return false;
    }
    NoteTrouble(applied.error());
    std::vector<Event> refused = backlog_.NoRoom(applied.error());
    if (refused.empty()) return false;  // nothing to refuse: retry later
    Tell(std::move(refused));           // the rest may fit now
  }
  return true;
}

void StorageThread::Tell(std::vector<Event> events, std::vector<Persist> written) {
  if (events.empty()) return;
  {
    std::lock_guard lock(mutex_);
    std::ranges::move(events, std::back_inserter(events_));
    std::ranges::move(written, std::back_inserter(written_));
  }
  done_.Signal();
}

}  // namespace loopfleet::coordinator
