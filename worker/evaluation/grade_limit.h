#pragma once
// GradeLimit: the best grade that this host allows, whatever the samples say. A worker enforces the
// conditions it controls (its slot, its cores), and lowers the grade for those that it can neither
// fix nor see in its measurements. Pure. The table is in docs/MEASUREMENT.md, "What the host
// spoils".

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

// A condition that the host does not report limits nothing: most virtual machines report little.
GradeLimit GradeLimitOf(std::span<const monitoring::Finding> findings);

// The text in every result: "seccomp+rlimits", "seccomp+rlimits; no better than B: governor".
std::string ConditionText(Isolation isolation, const GradeLimit& limit);

}  // namespace loopfleet::worker
