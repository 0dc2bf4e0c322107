#pragma once
// WriteBacklog: what the core wants on disk and is not there yet: which writes share a transaction,
// and what becomes of them when there is no room. It knows no thread, clock or database: the
// storage thread works it off (storage_thread.h), and so does the simulation. One thread at a time.
//
// When the disk has no room, or fails, what may be refused is refused, at once and for as long as
// that lasts; the rest is kept, in order, and tried again until it works. So writes reach the disk
// in the order of their tokens, but for the refused ones.

#include <cstddef>
#include <span>
#include <vector>

#include "common/base/result.h"
#include "coordinator/core/contract/effect.h"
#include "coordinator/core/contract/event.h"

namespace loopfleet::coordinator {

class WriteBacklog {
 public:
  static constexpr std::size_t kMaxRowsPerCommit = 20'000;  // about 0.2 s

  void Add(Persist persist) { waiting_.push_back(std::move(persist)); }
  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }

  // The writes at the front, for one transaction (group commit). Not empty if the backlog is not.
  // They stay here until Applied() or NoRoom() says what became of them.
  std::span<const storage::Write> StartGroup();
  std::size_t rows_of_group() const { return group_rows_; }
  // They are on disk. What the core is to be told: one Persisted each.
  std::vector<Event> Applied();
  // None of them is, for want of room or of a disk that works. What the core is to be told:
  // PersistRefused for each, of all that wait, that may be refused. If that is nothing, only time
  // can help.
  std::vector<Event> NoRoom(const Error& why);

 private:
  std::vector<Persist> waiting_;
  std::size_t group_size_ = 0;  // at the front of waiting_; 0: no group is started
  std::size_t group_rows_ = 0;
  std::vector<storage::Write> group_;  // their writes, taken out of them, if they are several
};

}  // namespace loopfleet::coordinator
