#pragma once
// AuditTable: measurements that are repeated by others, and the jobs that do it.
//
// An audit is a job of a batch of the coordinator's own. In memory only: after a restart its job is
// an ordinary one that measures anew, and nothing is compared.
//
// A worker that idles is asked for an audit when the audit begins to wait, and when the worker
// begins to idle: no pair is looked at twice.
//
// Invariant: a job is among the waiting exactly if its state in the JobTable is Auditing. Whoever
// waits longest to be given up comes first.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/base/clock.h"
#include "common/job/ids.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/core/rules/audit.h"

namespace loopfleet::coordinator {

struct AuditCase {
  std::vector<Opinion> opinions;  // one or two
  std::string hardware_class;
  Instant give_up_at{};
};

class AuditTable {
 public:
  // An audit that is to begin: its job is not accepted yet.
  struct Plan {
    AdmittedJob job;
    AuditCase what;
  };
  std::vector<Plan> plans;
  // Batches of audits on their way to disk, or with jobs that have no outcome.
  std::map<JobId, AuditCase> cases;
  std::map<JobId, Instant> waiting;  // for a worker
  // Of those: for which nobody who idles was asked yet, by device, and of which nobody knows yet
  // whether anybody could at all.
  std::array<std::set<JobId>, 2> unasked;
  std::set<JobId> unchecked;
  std::uint64_t checked_changes = 0;  // of the registry, when the others were checked
  std::uint64_t looks = 0;            // at a worker for an audit, so far
  // Jobs that workers of a device were given since one of them was an audit.
  std::array<std::uint32_t, 2> passed{};
  // Opinions that this turn completed: compared at its end, after the outcome was made.
  struct Complete {
    AuditCase what;
    JobSpec spec;
    ToMeasure measure;
  };
  std::vector<Complete> complete;

  std::size_t size() const { return plans.size() + cases.size(); }

  void StartWaiting(JobId job, Instant now) {
    waiting.emplace(job, now);
    for (auto& jobs : unasked) jobs.insert(job);
    unchecked.insert(job);
  }
  void StopWaiting(JobId job) {
    waiting.erase(job);
    for (auto& jobs : unasked) jobs.erase(job);
    unchecked.erase(job);
  }
};

}  // namespace loopfleet::coordinator
