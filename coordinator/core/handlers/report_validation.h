#pragma once
// Whether a report is plausible: its figures are numbers, follow from their samples, and do not
// exceed the peaks of the worker's device; its durations can be added up; and it describes this
// worker and what the job asked for. An implausible report is the worker's fault and never becomes
// a measurement (promises I3, I11).

#include <optional>
#include <string>

#include "common/job/outcome.h"
#include "coordinator/core/tables/job_table.h"
#include "coordinator/core/tables/lease_table.h"
#include "coordinator/core/tables/worker_registry.h"

namespace loopfleet::coordinator {

// Why the report is implausible; empty if it is plausible.
std::optional<std::string> WhyImplausible(const Evaluation& evaluation, const Job& job,
                                          const Worker& worker);

// Why a figure under this lease is in doubt: the worker was quarantined at some time while it had
// the job. "": it is not in doubt.
std::string DoubtOf(const Worker& worker, const LeaseRecord& lease);

}  // namespace loopfleet::coordinator
