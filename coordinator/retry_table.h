#pragma once
// RetryTable: jobs that wait for a turn on another worker than those that had them. They go before
// everything that is queued, and wait for a short time only.
//
// Invariant: a job is in it exactly once if its state in the JobTable is Retrying, and not
// otherwise. Whoever has waited longest comes first.

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "common/base/clock.h"
#include "common/job/ids.h"

namespace loopfleet::coordinator {

class RetryTable {
 public:
  using Order = std::uint64_t;
  struct Entry {
    JobId job;
    Instant wait_until{};  // for another worker
  };

  Order Add(JobId job, Instant wait_until) {
    entries_.emplace(++last_, Entry{.job = job, .wait_until = wait_until});
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
