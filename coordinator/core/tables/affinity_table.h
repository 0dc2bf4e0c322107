#pragma once
// AffinityTable: which worker runs the jobs of each affinity, and which of these jobs wait.
//
// An affinity is bound to the worker that first gets one of its jobs, and stays bound until that
// worker can serve it no more (Release). Invariant: `waiting` holds the ReadyQueue's jobs with this
// affinity. Bounded: beyond `max_affinities`, the least recently used one without waiting jobs is
// forgotten.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/uuid.h"
#include "common/job/ids.h"

namespace loopfleet::coordinator {

class AffinityTable {
 public:
  // Nil: not bound.
  Uuid WorkerOf(const std::string& affinity) const;
  // Its waiting jobs, ascending by id.
  std::vector<JobId> WaitingWith(const std::string& affinity) const;

  void StartWaiting(const std::string& affinity, JobId job, std::size_t max_affinities);
  void StopWaiting(const std::string& affinity, JobId job);
  void Bind(const std::string& affinity, const Uuid& worker, std::size_t max_affinities);
  void Release(const std::string& affinity);

  std::vector<Uuid> Workers() const;  // those with a bound affinity
  std::vector<std::string> BoundTo(const Uuid& worker) const;
  std::size_t size() const { return entries_.size(); }
  // Grows whenever an affinity is bound or released.
  std::uint64_t changes() const { return changes_; }

  // For CheckInvariants.
  template <class Visit>
  void ForEachWaiting(const Visit& visit) const {
    for (const auto& [affinity, entry] : entries_) {
      for (const JobId job : entry.waiting) visit(affinity, job);
    }
  }
  void CheckInvariants() const;

 private:
  struct Entry {
    Uuid worker;  // nil: none
    std::set<JobId> waiting;
    std::uint64_t used = 0;  // sequence number of the last use; in `idle_` if nothing waits
  };
  using Entries = std::map<std::string, Entry>;

  Entries::iterator Use(const std::string& affinity, std::size_t max_affinities);
  void Settle(Entries::iterator entry);  // after a change: idle, or forgotten if empty

  Entries entries_;
  std::map<Uuid, std::set<std::string>> bound_;
  std::map<std::uint64_t, std::string> idle_;
  std::uint64_t uses_ = 0;
  std::uint64_t changes_ = 0;
};

}  // namespace loopfleet::coordinator
