#pragma once
// GradeLimit: the best grade that figures of this host can have, whatever their samples say: a
// worker enforces what it can (its slot, its cores), and grades down for what it cannot mend and
// its measurements do not see. Pure. The table is in docs/MEASUREMENT.md, "What the host spoils".

#include <span>
#include <string>
#include <vector>

#include "common/job/measurement.h"
#include "monitoring/host/host_inspection.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {

struct GradeLimit {
  Grade best = Grade::kA;
  std::vector<std::string> because;  // names of checks: "governor"
  friend bool operator==(const GradeLimit&, const GradeLimit&) = default;
};

// What a host does not say about itself limits nothing: most virtual machines say little.
GradeLimit GradeLimitOf(std::span<const monitoring::Finding> findings);

// As it stands in every result: "seccomp+rlimits", "seccomp+rlimits; no better than B: governor".
std::string ConditionText(Isolation isolation, const GradeLimit& limit);

}  // namespace loopfleet::worker
