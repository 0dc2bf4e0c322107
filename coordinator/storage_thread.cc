#include "coordinator/storage_thread.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/log.h"

namespace loopfleet::coordinator {
namespace {

std::size_t RowsOf(const Persist& persist) {
  std::size_t rows = 0;
  for (const storage::Write& write : persist.writes) {
    const auto* accepted = std::get_if<storage::JobsAccepted>(&write);
    rows += accepted == nullptr ? 1 : 1 + accepted->jobs.size();
  }
  return rows;
}

}  // namespace

StorageThread::StorageThread(storage::Store& store, monitoring::CoordinatorMetrics& metrics,
                             const Clock& clock, wire::Wakeup& done)
    : store_(store), metrics_(metrics), clock_(clock), done_(done), thread_([this] { Run(); }) {}

StorageThread::~StorageThread() {
  stopping_ = true;
  queue_.Close();
  thread_.join();
}

void StorageThread::Write(Persist persist) { queue_.Push(std::move(persist)); }

std::vector<Event> StorageThread::TakeEvents() {
  std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

std::optional<Error> StorageThread::fatal() const {
  std::lock_guard lock(mutex_);
  return fatal_;
}

void StorageThread::Run() {
  while (true) {
    std::vector<Persist> fresh;
    if (backlog_.empty()) {
      fresh = queue_.PopAll();
      if (fresh.empty()) return;  // closed
    } else {
      // No room a moment ago. New work must not wait for it: it is refused or queued behind.
      while (auto persist = queue_.TryPop()) fresh.push_back(*std::move(persist));
    }
    std::ranges::move(fresh, std::back_inserter(backlog_));
    if (WriteBacklog()) continue;
    if (stopping_ || fatal()) return;
    std::this_thread::sleep_for(kRetryPause);
  }
}

bool StorageThread::WriteBacklog() {
  while (!backlog_.empty()) {
    std::size_t rows = 0;
    std::size_t count = 0;
    while (count < backlog_.size() && (count == 0 || rows < kMaxRowsPerCommit)) {
      rows += RowsOf(backlog_[count++]);
    }
    const Instant start = clock_.Now();
    const Status applied = Apply(std::span(backlog_).first(count));
    if (applied) {
      metrics_.Committed(clock_.Now() - start, rows);
      if (full_.exchange(false)) log::Info("storage.has_room");
      std::vector<Event> persisted;
      for (std::size_t i = 0; i < count; ++i) persisted.push_back(Persisted{backlog_[i].token});
      backlog_.erase(backlog_.begin(), backlog_.begin() + static_cast<std::ptrdiff_t>(count));
      Tell(std::move(persisted));
      continue;
    }
    const ErrorKind kind = applied.error().kind;
    // No room, a disk that fails, somebody who holds the file: time may help. The rest does not
    // pass: damage, a newer writer, or a bug of ours.
    if (kind != ErrorKind::kFull && kind != ErrorKind::kUnavailable && kind != ErrorKind::kSystem) {
      {
        std::lock_guard lock(mutex_);
        fatal_ = applied.error();
      }
      done_.Signal();
      return false;
    }
    if (!full_.exchange(true)) log::Warning("storage.no_room reason={}", applied.error().message);
    const std::size_t before = backlog_.size();
    RefuseWhatMayBe(applied.error());
    // What is left may fit now. If nothing went, only time can help.
    if (backlog_.size() == before) return false;
  }
  return true;
}

Status StorageThread::Apply(std::span<Persist> group) {
  if (group.size() == 1) return store_.Apply(group.front().writes);
  std::vector<storage::Write> writes;
  for (Persist& persist : group) std::ranges::move(persist.writes, std::back_inserter(writes));
  Status applied = store_.Apply(writes);
  if (applied) return applied;
  auto next = writes.begin();  // put back, to be tried again
  for (Persist& persist : group) {
    for (storage::Write& write : persist.writes) write = std::move(*next++);
  }
  return applied;
}

void StorageThread::RefuseWhatMayBe(const Error& error) {
  const Failure failure{.code = error.kind == ErrorKind::kUnavailable ? FailureCode::kBusy
                                                                      : FailureCode::kStorageFull,
                        .message = error.message};
  std::vector<Event> refused;
  std::erase_if(backlog_, [&](const Persist& persist) {
    if (persist.when_full != WhenFull::kRefuse) return false;
    refused.push_back(PersistRefused{.token = persist.token, .failure = failure});
    return true;
  });
  Tell(std::move(refused));
}

void StorageThread::Tell(std::vector<Event> events) {
  if (events.empty()) return;
  {
    std::lock_guard lock(mutex_);
    std::ranges::move(events, std::back_inserter(events_));
  }
  done_.Signal();
}

}  // namespace loopfleet::coordinator
