#pragma once
// RetryTable: jobs whose next turn is not one that just any worker may give them. They go before
// everything that is queued.
//
//   elsewhere  failed on a worker and waits, for a short time, for another one
//   alone      was with a worker that was lost. Whether it was this job that ended the worker or
//   one
//              of those beside it, nobody knows; so it is the only job of the next one, which is
//              reserved for it and finishes what it has first. So a job that takes workers down
//              takes no innocent one down with it (promise I7).
//
// Invariant: a job is in it exactly once if its state in the JobTable is Retrying, and not
// otherwise. Whoever has waited longest comes first.

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/ids.h"

namespace loopfleet::coordinator {

struct WaitsForAnother {
  Instant until{};
};
struct WaitsToBeAlone {
  Uuid worker;  // that is reserved for it
};

class RetryTable {
 public:
  using Order = std::uint64_t;
  struct Entry {
    JobId job;
    std::variant<WaitsForAnother, WaitsToBeAlone> what;
  };

  Order Add(Entry entry) {
    entries_.emplace(++last_, entry);
    return last_;
  }
  void Remove(Order order) { entries_.erase(order); }
  std::size_t size() const { return entries_.size(); }
  const std::map<Order, Entry>& entries() const { return entries_; }
  // The next ones to look at, `most` of them: all from the oldest on if they are no more; else the
  // next call goes on where this one ends, so that each has its turn.
  std::vector<std::pair<Order, Entry>> Next(std::size_t most) {
    if (entries_.size() <= most) return {entries_.begin(), entries_.end()};
    std::vector<std::pair<Order, Entry>> next;
    for (auto entry = entries_.upper_bound(looked_at_); next.size() < most; ++entry) {
      if (entry == entries_.end()) entry = entries_.begin();
      next.emplace_back(*entry);
    }
    looked_at_ = next.back().first;
    return next;
  }

 private:
  std::map<Order, Entry> entries_;
  Order last_ = 0;
  Order looked_at_ = 0;
};

}  // namespace loopfleet::coordinator
