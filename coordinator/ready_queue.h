#pragma once
// ReadyQueue: the jobs that a worker could start now, first accepted first, by where they may run.
//
// Invariant: a job is in it exactly once if its state in the JobTable is Queued, and not otherwise;
// the state's Place is where. Orders ascend within each placement's list.

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>

#include "common/job/ids.h"
#include "common/job/job_spec.h"

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
    Placement placement = Placement::kCpu;
    List::iterator entry;
  };

  Place PushBack(JobId job, Placement placement);
  // Before everything else: for a job that had its turn before.
  Place PushFront(JobId job, Placement placement);
  void Remove(Place place);

  // The first job that a worker of this device may run.
  std::optional<JobId> PopFor(DeviceKind device);
  std::size_t CountFor(DeviceKind device) const;

  std::optional<JobId> Front(Placement placement) const;
  std::size_t Size(Placement placement) const { return ListOf(placement).size(); }

  void CheckInvariants() const;

 private:
  List& ListOf(Placement placement) { return lists_[static_cast<std::size_t>(placement)]; }
  const List& ListOf(Placement placement) const {
    return lists_[static_cast<std::size_t>(placement)];
  }

  std::array<List, 3> lists_;
  std::int64_t next_back_ = 0;
  std::int64_t next_front_ = -1;
};

}  // namespace loopfleet::coordinator
