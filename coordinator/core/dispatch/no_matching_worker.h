#pragma once
// What the fleet lacks for a job that no worker could run, in words.

#include <string>

#include "common/base/clock.h"
#include "coordinator/core/rules/placement.h"
#include "coordinator/core/tables/worker_registry.h"

namespace loopfleet::coordinator {

// The text of a NO_MATCHING_WORKER: what is missing, and which worker comes nearest. `grace`: how
// long the job has waited for one; 0: it waits still.
std::string WhyUnschedulable(const WorkerRegistry& workers, const Demand& demand, Nanos grace);

}  // namespace loopfleet::coordinator
