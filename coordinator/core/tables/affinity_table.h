#pragma once
// AffinityTable: which worker the jobs of each affinity run on, and those of them that wait.
//
// An affinity is bound to the worker that first gets one of its jobs, and stays bound until that
// worker is of no use any more (Release). Invariant: `waiting` are the jobs of the ReadyQueue that
// have this affinity. Bounded: of more than `max_affinities`, those that nothing waits for are
// forgotten, the one unused for longest first.

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
  // Nil: it is bound to none.
  Uuid WorkerOf(const std::string& affinity) const;
  // Its jobs that wait, in the order of their ids.
  std::vector<JobId> WaitingWith(const std::string& affinity) const;

  void StartWaiting(const std::string& affinity, JobId job, std::size_t max_affinities);
  void StopWaiting(const std::string& affinity, JobId job);
  void Bind(const std::string& affinity, const Uuid& worker, std::size_t max_affinities);
  void Release(const std::string& affinity);

  std::vector<Uuid> Workers() const;  // that something is bound to
  std::vector<std::string> BoundTo(const Uuid& worker) const;
  std::size_t size() const { return entries_.size(); }

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
    std::uint64_t used = 0;  // when it was last; among `idle_` if nothing waits
  };
  using Entries = std::map<std::string, Entry>;

  Entries::iterator Use(const std::string& affinity, std::size_t max_affinities);
  void Settle(Entries::iterator entry);  // after a change: idle, or forgotten if it says nothing

  Entries entries_;
  std::map<Uuid, std::set<std::string>> bound_;
  std::map<std::uint64_t, std::string> idle_;
  std::uint64_t uses_ = 0;
};

}  // namespace loopfleet::coordinator
