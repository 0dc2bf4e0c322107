#pragma once
// AuditTable: measurements that are repeated by others, and the jobs that do it.
//
// An audit is a job of a batch of the coordinator's own. In memory only: after a restart its job is
// an ordinary one that measures anew, and nothing is compared.
//
// Invariant: a job is among the waiting exactly if its state in the JobTable is Auditing.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/job/ids.h"
#include "coordinator/audit.h"
#include "coordinator/event.h"

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
};

}  // namespace loopfleet::coordinator
