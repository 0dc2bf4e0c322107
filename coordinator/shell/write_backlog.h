#pragma once
// WriteBacklog: writes that are not on disk yet. Decides which of them share a transaction, and
// which are refused when the disk is full. Without a thread, clock or database: the storage thread
// (storage_thread.h) and the simulation drive it. One thread at a time.
//
// While the disk is full or fails, writes that may be refused are refused at once; the others are
// kept in order and retried until they succeed. So writes reach the disk in the order of their
// tokens, except those that are refused.

#include <cstddef>
#include <span>
#include <vector>

#include "common/base/result.h"
#include "coordinator/core/contract/effect.h"
#include "coordinator/core/contract/event.h"
#include "storage/store.h"

namespace loopfleet::coordinator {

class WriteBacklog {
 public:
  static constexpr std::size_t kMaxRowsPerCommit = 5'000;  // about 0.05 s
  // Many small writes become one event, so that a worker gets one message for all of them. Not more
  // rows than a message of leases holds, and no longer than an event may take.
  static constexpr std::size_t kMaxRowsPerEvent = 1'000;

  void Add(Persist persist) { waiting_.push_back(std::move(persist)); }
  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }

  // The writes at the front, for one transaction (group commit). Not empty if the backlog is not.
  // They stay here until Applied() or NoRoom() is called.
  storage::WriteGroup StartGroup();
  std::size_t rows_of_group() const { return group_rows_; }
  // The group is on disk. Returns it, and Persisted events of at most kMaxRowsPerEvent rows, or one
  // token.
  struct Written {
    std::vector<Event> persisted;
    std::vector<Persist> group;
  };
  Written Applied();
  // The group is not on disk, because the disk is full or fails. Removes all waiting writes that
  // may be refused, and returns one PersistRefused for each. Empty: only a later retry can help.
  std::vector<Event> NoRoom(const Error& why);

 private:
  std::vector<Persist> waiting_;
  // The writes of the first ones; empty: no group is started.
  std::vector<std::span<const storage::Write>> group_;
  std::vector<std::size_t> rows_;  // of each of the group
  std::size_t group_rows_ = 0;
};

}  // namespace loopfleet::coordinator
