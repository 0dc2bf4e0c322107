#pragma once
// ResolvedTask: what is known of a job before a worker has it.

#include <cstdint>
#include <optional>

#include "common/base/content_key.h"
#include "common/job/job_spec.h"

namespace loopfleet {

// Identifies what a job asks about, its conditions apart: for a loop schedule, the tree.
using SubjectKey = ContentKey;

// Identifies the benchmark's program, whose schedules can be compared: looptree::ProgramKey.
using ProgramKey = ContentKey;

struct ResolvedTask {
  SubjectKey subject;
  std::optional<ProgramKey> program = std::nullopt;  // of a loop schedule
  Placement placement = Placement::kCpu;
  std::uint64_t flop_count = 0;  // of one run; 0: unknown, or it is not timed
};

}  // namespace loopfleet
