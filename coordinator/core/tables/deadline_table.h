#pragma once
// DeadlineTable: when unfinished jobs expire, soonest first.
//
// Invariant: a job of the JobTable is here exactly if it has a deadline, under that deadline.

#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/job/ids.h"

namespace loopfleet::coordinator {

class DeadlineTable {
 public:
  void Add(JobId job, Instant expires_at) {
    LF_CHECK(jobs_.emplace(expires_at, job).second, "job {} expires already", job);
  }
  void Remove(JobId job, Instant expires_at) {
    LF_CHECK(jobs_.erase({expires_at, job}) == 1, "job {} does not expire", job);
  }
  // A job whose deadline has passed; nullopt if none has.
  std::optional<JobId> Due(Instant now) const {
    if (jobs_.empty() || jobs_.begin()->first > now) return std::nullopt;
    return jobs_.begin()->second;
  }
  bool Contains(JobId job, Instant expires_at) const { return jobs_.contains({expires_at, job}); }
  std::size_t size() const { return jobs_.size(); }

 private:
  std::set<std::pair<Instant, JobId>> jobs_;
};

}  // namespace loopfleet::coordinator
