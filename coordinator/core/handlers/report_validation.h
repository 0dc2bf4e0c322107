#pragma once
// Whether a report can be true: figures that are numbers, follow from their samples and are below
// what the worker's device can do; durations that can be added up; and a worker that speaks of
// itself and of what the job asked for. What cannot be is the worker's fault
// and never becomes a measurement (promises I3, I11).

#include <optional>
#include <string>

#include "common/job/outcome.h"
#include "coordinator/core/tables/job_table.h"
#include "coordinator/core/tables/lease_table.h"
#include "coordinator/core/tables/worker_registry.h"

namespace loopfleet::coordinator {

// Why not; empty if it can.
std::optional<std::string> WhyImplausible(const Evaluation& evaluation, const Job& job,
                                          const Worker& worker);

// Why a figure that the worker has of this lease is in doubt: it was in quarantine at some time
// since it was given the job. "": it is in none.
std::string DoubtOf(const Worker& worker, const LeaseRecord& lease);

}  // namespace loopfleet::coordinator
