#pragma once
// ResolvedTask: what is known of a job before a worker has it.

#include <cstdint>

#include "common/base/content_key.h"
#include "common/job/job_spec.h"

namespace loopfleet {

// Identifies what a job asks about, its conditions apart: for a loop schedule, the tree.
using SubjectKey = ContentKey;

struct ResolvedTask {
  SubjectKey subject;
  Placement placement = Placement::kCpu;
  std::uint64_t flop_count = 0;  // of one run; 0: unknown, or it is not timed
};

}  // namespace loopfleet
