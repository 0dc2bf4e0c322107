#pragma once
// Outcomes and their parts as text.

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/job/job_spec.h"
#include "common/job/outcome.h"

namespace loopfleet::client {

std::string DurationText(Nanos duration);  // "1.25 ms"
std::string TimeText(WallTime time);       // "2026-01-31 12:00:00" (UTC)
std::string SourceText(const looptree::Source& source);
// The loop tree that the job's actions lead to; "" if the replay fails.
std::string TreeOf(const JobSpec& spec);

// What came out: the benchmark, its tree and figures, or the values that were observed; origin and
// stages. The job must not have failed.
std::string AnswerText(const JobSpec& spec, const Outcome& outcome);
// The figure and its grade in one line. The outcome must have a measurement.
std::string FigureText(const Outcome& outcome);
// "INVALID_ACTION: unknown action ...".
std::string FailureText(const Failure& failure);

}  // namespace loopfleet::client
