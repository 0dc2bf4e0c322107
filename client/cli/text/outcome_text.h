#pragma once
// Outcomes and their parts as text for people.

#include <string>

#include "common/base/clock.h"
#include "common/job/job_spec.h"
#include "common/job/outcome.h"

namespace loopfleet::client {

std::string DurationText(Nanos duration);  // "1.25 ms"
std::string TimeText(WallTime time);       // "2026-01-31 12:00:00" (UTC)
std::string SourceText(const looptree::Source& source);
// The loop tree that the job's actions lead to; "" where they lead to none.
std::string TreeOf(const JobSpec& spec);

// Benchmark, tree, figures, whence they come, stages. Only for an outcome that has a measurement.
std::string MeasurementText(const JobSpec& spec, const Outcome& outcome);
// "INVALID_ACTION: unknown action ..." with what to do.
std::string FailureText(const Failure& failure);

}  // namespace loopfleet::client
