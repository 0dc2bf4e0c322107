#pragma once
// Describes what the fleet lacks for a job that no worker can run.

#include <string>

#include "common/base/clock.h"
#include "coordinator/core/rules/placement.h"
#include "coordinator/core/tables/worker_registry.h"

namespace loopfleet::coordinator {

// The text of a NO_MATCHING_WORKER failure: what is missing, and which worker comes nearest.
// `grace`: how long the job waited for a worker; 0: it still waits.
std::string WhyUnschedulable(const WorkerRegistry& workers, const Demand& demand, Nanos grace);

}  // namespace loopfleet::coordinator
