#pragma once
// JobTable: every job that is accepted, on disk, and has no outcome yet.
//
// Invariant: a job is here exactly from the moment its acceptance is durable until its outcome is
// made. It is in one of three states, and the other tables agree with it: Queued (in the
// ReadyQueue), Leased (under a running lease of the LeaseTable), Following (a follower in the
// InFlightTable).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <variant>

#include "common/base/clock.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "common/looptree/key.h"
#include "coordinator/event.h"
#include "coordinator/in_flight_table.h"
#include "coordinator/ready_queue.h"

namespace loopfleet::coordinator {

struct Queued {
  ReadyQueue::Place place;
};
struct Leased {
  LeaseId lease;
};
struct Following {};
using JobProgress = std::variant<Following, Queued, Leased>;

// Whether the job takes part in coalescing: `fresh` ones neither lead nor follow.
enum class Sharing : std::uint8_t { kShares, kAlone };

struct Job {
  JobId id;
  JobSpec spec;
  looptree::TreeKey tree;
  Placement placement = Placement::kCpu;
  Sharing sharing = Sharing::kShares;
  Instant accepted_at{};
  Instant expires_at = Instant::max();  // EXPIRED from then on; max: it has no deadline
  std::uint32_t attempts = 0;           // leases granted, but for those that came back unrun
  JobProgress progress;
};

Question QuestionOf(const JobSpec& spec, const ToMeasure& admission);
Question QuestionOf(const Job& job);

class JobTable {
 public:
  Job& Add(Job job);
  Job* Find(JobId id);
  const Job* Find(JobId id) const;
  Job& At(JobId id);   // must be there
  Job Take(JobId id);  // out of the table
  std::size_t size() const { return jobs_.size(); }

  // For CheckInvariants: in no particular order.
  template <class Visit>
  void ForEachUnordered(const Visit& visit) const {
    for (const auto& [id, job] : jobs_) visit(job);
  }

 private:
  std::unordered_map<JobId, Job> jobs_;  // looked up, never iterated by transitions
};

}  // namespace loopfleet::coordinator
