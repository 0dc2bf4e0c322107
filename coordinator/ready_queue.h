#pragma once
// ReadyQueue: the jobs that a worker could start now, first accepted first, by what they demand.
//
// Invariant: a job is in it exactly once if its state in the JobTable is Queued, and not otherwise;
// the state's Place is where. Orders ascend within each demand's list; no list is empty.

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>

#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "coordinator/placement.h"

namespace loopfleet::coordinator {

class ReadyQueue {
  struct Entry {
    std::int64_t order = 0;  // over all placements
    JobId job;
  };
  using List = std::list<Entry>;

 public:
  // Where a job stands; valid until it is popped or removed.
  struct Place {
    Demand demand;
    List::iterator entry;
  };

  Place PushBack(JobId job, const Demand& demand);
  // Before everything else: for a job that had its turn before.
  Place PushFront(JobId job, const Demand& demand);
  void Remove(const Place& place);

  // The first job that a worker of this kind may run.
  std::optional<JobId> PopFor(const Supply& supply);
  std::size_t CountFor(DeviceKind device) const;  // for one with any number of threads

  std::optional<JobId> Front(const Demand& demand) const;
  std::size_t Size(Placement placement) const;
  std::size_t size() const;

  void CheckInvariants() const;

 private:
  std::map<Demand, List> lists_;
  std::int64_t next_back_ = 0;
  std::int64_t next_front_ = -1;
};

}  // namespace loopfleet::coordinator
