#pragma once
// RetryTable: jobs waiting to be retried on a particular worker. Served before the ready queue.
//
// - WaitsForAnother: failed on one worker and waits, for a short time, for another one.
// - WaitsToBeAlone: its worker was lost. The cause may be this job or one that ran beside it, so
//   the retry runs alone: a worker is reserved for it and finishes its other jobs first. So a job
//   that crashes workers takes no innocent job with it (promise I7).
//
// Invariant: a job is here, exactly once, if and only if its state in the JobTable is Retrying. The
// longest waiting comes first.

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
  // What was found: of the candidates up to this rank none will do; as of this change count of the
  // registry there is a worker that can run it.
  std::uint64_t rank = 0;
  std::uint64_t changes = 0;
};
struct WaitsToBeAlone {
  Uuid worker;  // reserved for this job
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
  Entry& At(Order order) { return entries_.at(order); }  // must exist
  std::size_t size() const { return entries_.size(); }
  const std::map<Order, Entry>& entries() const { return entries_; }
  // The next `most` entries to examine. If there are no more than that, all of them, oldest first;
  // else each call continues where the last one ended, so that every entry is reached.
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

  // For tests: how often a worker was considered for a job.
  void CountLook() { ++looks_; }
  std::uint64_t looks() const { return looks_; }

 private:
  std::map<Order, Entry> entries_;
  Order last_ = 0;
  Order looked_at_ = 0;
  std::uint64_t looks_ = 0;
};

}  // namespace loopfleet::coordinator
