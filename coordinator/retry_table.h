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
#include <variant>

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

 private:
  std::map<Order, Entry> entries_;
  Order last_ = 0;
};

}  // namespace loopfleet::coordinator
